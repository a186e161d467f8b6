import { type Clock, systemClock } from "../core/clock.js";
import { type KvRouterConfig, parseConfig } from "../core/config.js";
import { WarmrouteError } from "../core/errors.js";
import { parseU64 } from "../core/ids.js";
import { consoleLogger, type Logger, quietLogger } from "../core/log.js";
import { Random } from "../core/random.js";
import type { WorkerInput, WorkerRecord } from "../core/types.js";
import { parseWorker } from "../core/worker.js";
import { checkBlockSize } from "../kernel/kernel.js";
import type { RouterPlugins } from "../plugins/bundle.js";
import { HandleNet } from "../scheduling/bookings/booking-handle.js";
import { Leases } from "../scheduling/bookings/leases.js";
import { RequestIds } from "../scheduling/bookings/request-ids.js";
import { DecisionLog } from "../scheduling/decision-log.js";
import type { BusyThresholds } from "../scheduling/overload.js";
import { poolSeed } from "../scheduling/pool-seed.js";
import { PolicyClasses, profileOf } from "../scheduling/queue/policy-class.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
import { Admission } from "./admission.js";
import { Availability } from "./availability.js";
import { assertHonoured, assertServed, bundleOf, selectionFactory } from "./construct.js";
import type { Decision, RouterOptions } from "./contract.js";
import type { EntryPointName } from "./entry-points.js";
import { type Installed, install } from "./hooks.js";
import type { Lifetime } from "./lifetime.js";
import { Pools } from "./pools.js";
import { checkOptions } from "./read-request.js";
import { WorkerTable } from "./workers.js";

const DEFAULT_GROUP = "default";

/** What a router is made of: the one construction of every router, with its plugins. */
export class RouterParts {
  readonly model: string;
  readonly blockSize: number;
  readonly config: KvRouterConfig;
  readonly plugins: RouterPlugins;
  readonly clock: Clock;
  readonly log: Logger;
  /** Blocks are named by their sequence hashes. */
  readonly ownNames: boolean;
  readonly requestIds = new RequestIds();
  readonly leases: Leases;
  readonly handles: HandleNet;
  readonly availability = new Availability();
  readonly decisions: DecisionLog<Decision> | undefined;
  readonly pools: Pools;
  readonly workers: WorkerTable;
  readonly installed: Installed;
  readonly admission: Admission;
  readonly #entryPoints = new Set<EntryPointName>();

  /**
   * Checks options and plugins, makes a policy for each pool that the first workers need, and installs what works for
   * the whole router. What was made is closed again if something fails.
   */
  constructor(options: RouterOptions, entryPoint: EntryPointName, lifetime: Lifetime) {
    checkOptions(options);
    const blockSize = options.blockSize === undefined ? 64 : options.blockSize;
    checkBlockSize(blockSize);
    this.model = options.model ?? "default";
    this.blockSize = blockSize;
    this.config = parseConfig(options.config);
    this.clock = options.clock ?? systemClock;
    this.log = quietLogger(options.log ?? consoleLogger);
    this.leases = new Leases(this.requestIds, this.config.activeRequestExpirySecs * 1000, this.log);
    this.handles = new HandleNet(this.log);
    this.decisions = logOf(options.decisionLog);
    this.ownNames = options.blockNames === "sequence";
    this.plugins = bundleOf(options);
    const seed = seedOf(options);
    const { model, config, plugins, clock, log, ownNames, requestIds } = this;
    const profile = profileOf(plugins.profiles, model, config);
    this.pools = new Pools({
      ...{ model, blockSize, config, ownNames, seed, clock, log, requestIds },
      sweep: () => this.leases.sweep(clock.now()),
      prefillLoadModel: options.prefillLoadModel,
      classes: profile.policyClasses,
      maxRanks: options.maxRanks,
      budgetBytes: options.memoryBudgetBytes,
      wantsEvents: options.config?.useKvEvents === true,
      factory: selectionFactory(plugins),
    });
    this.workers = new WorkerTable(this.pools);
    const classes = new PolicyClasses(profile);
    const random = new Random(poolSeed(seed, `${model}/classifier`));
    try {
      this.serveAt(entryPoint);
      this.#addFirst(options.workers ?? []);
      this.installed = install(plugins, {
        ...{ options, blockSize, classes, clock, log },
        random: () => random.double(),
        workers: () => this.workers.capacity(),
      });
      const { classifier } = this.installed;
      this.admission = new Admission({
        ...{ classes, clock, requestIds, classifier, handles: this.handles, decisions: this.decisions },
        isOver: () => lifetime.ended,
      });
    } catch (error) {
      void this.pools.close();
      throw error;
    }
  }

  #addFirst(workers: readonly WorkerInput[]): void {
    for (const [i, worker] of workers.entries()) {
      const record = parseWorker(worker, `workers[${i}]`);
      if (this.workers.has(record.workerId)) {
        throw new WarmrouteError("invalid_worker", `workers[${i}] repeats the worker ${record.workerId}`, {
          path: `workers[${i}].workerId`,
        });
      }
      this.addWorker(record);
    }
    // A router that starts empty still finds out now whether its policy can be built.
    if (workers.length === 0) this.defaultPool();
  }

  /** The pool of requests that name neither group nor role; made if it is not there. */
  defaultPool(): SelectionCore {
    const pool = this.pools.get(DEFAULT_GROUP, "aggregated");
    return pool ?? this.workers.exclusively(() => this.pools.open(DEFAULT_GROUP, "aggregated"));
  }

  addWorker(record: WorkerRecord): WorkerRecord {
    for (const entryPoint of this.#entryPoints) assertServed(entryPoint, record);
    const added = this.workers.add(record);
    this.availability.applyTo(this.pools);
    return added;
  }

  /** The busy thresholds of every pool, also of those to come; set first if any are given. */
  busyThresholds(thresholds?: BusyThresholds): BusyThresholds {
    if (thresholds) this.pools.setThresholds(thresholds);
    return this.pools.thresholds;
  }

  /** Brings loads up to date before they are read. */
  refresh(): void {
    for (const core of this.pools) core.refresh();
  }

  /** See `Router.serveAt`. */
  serveAt(entryPoint: EntryPointName): void {
    assertHonoured(entryPoint, this.plugins);
    for (const worker of this.workers.list()) assertServed(entryPoint, worker);
    this.#entryPoints.add(entryPoint);
  }
}

function seedOf({ seed }: RouterOptions): bigint {
  if (seed !== undefined) return parseU64(seed, "seed", "invalid_config");
  try {
    return crypto.getRandomValues(new BigUint64Array(1))[0]!;
  } catch (cause) {
    // As workerd does outside of a request.
    const message = "this place has no random numbers: create the router within a request, or give it a seed";
    throw new WarmrouteError("invalid_config", message, { path: "seed", cause });
  }
}

function logOf(size: boolean | number | undefined): DecisionLog<Decision> | undefined {
  if (!size) return undefined;
  return size === true ? new DecisionLog() : new DecisionLog(size);
}
