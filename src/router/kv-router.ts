import { type Clock, systemClock } from "../core/clock.js";
import { type KvRouterConfig, parseConfig } from "../core/config.js";
import { WarmrouteError } from "../core/errors.js";
import { readGraceMs } from "../core/fields.js";
import { describe, parseU64, type U64Input, workerIdString } from "../core/ids.js";
import { consoleLogger, type Logger } from "../core/log.js";
import { Random } from "../core/random.js";
import type { StorageTier, WorkerInput, WorkerRank, WorkerRecord } from "../core/types.js";
import { parseWorker } from "../core/worker.js";
import { Counter } from "../kernel/abi.js";
import { budgetError, checkBlockSize } from "../kernel/kernel.js";
import type { RouterPlugins } from "../plugins/bundle.js";
import { outcomeError } from "../scheduling/eligibility.js";
import { PolicyClasses, profileOf } from "../scheduling/policy-class.js";
import { poolSeed } from "../scheduling/pool-seed.js";
import { RequestIds } from "../scheduling/request-ids.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
import { Admission } from "./admission.js";
import { readAttributes } from "./attributes.js";
import { CacheEvents, type EventResult } from "./cache-events.js";
import { assertHonoured, assertIndex, assertServed, bundleOf, selectionFactory } from "./construct.js";
import type {
  Booking,
  CallOptions,
  LoadRow,
  OverlapRow,
  ProbeResult,
  ReserveRequest,
  RestoreResult,
  RouteOptions,
  Router,
  RouterOptions,
  RouterStats,
  Selection,
  SelectRequest,
  SnapshotPart,
} from "./contract.js";
import type { RouterEdge } from "./edge.js";
import type { EntryPointName } from "./entry-points.js";
import { type Installed, install } from "./hooks.js";
import { OpenAiCalls } from "./openai-calls.js";
import { Pools } from "./pools.js";
import {
  checkCallOptions,
  checkOptions,
  checkOverlap,
  checkReserve,
  checkSelect,
  readHeaders,
  readParts,
} from "./read-request.js";
import { readSnapshot, writeSnapshot } from "./snapshot.js";
import { WorkerTable } from "./workers.js";

const DEFAULT_GROUP = "default";
/** How often a router that closes looks whether its requests have ended. */
const drainPollMs = 10;
/** What the plugins' own close() gets at least. */
const pluginPatienceMs = 1000;

/** Who builds a router. */
export interface RouterHost {
  entryPoint: EntryPointName;
  edge?: RouterEdge;
}

/** One router: one model, and a pool for each routing group and role that its workers name. */
export class KvRouter implements Router {
  readonly model: string;
  readonly blockSize: number;
  readonly config: KvRouterConfig;
  readonly plugins: RouterPlugins;
  readonly clock: Clock;
  /** Blocks are named by their sequence hashes. */
  readonly ownNames: boolean;
  readonly #options: RouterOptions;
  readonly #entryPoints = new Set<EntryPointName>();
  readonly #pools: Pools;
  readonly #workers: WorkerTable;
  readonly #events: CacheEvents;
  readonly #requestIds = new RequestIds();
  readonly #installed: Installed;
  readonly #admission: Admission;
  readonly #calls: OpenAiCalls;
  readonly #log: Logger;
  /** close() was called. */
  #closing = false;
  /** The grace is over. */
  #ended = false;
  #closed: Promise<void> | undefined;

  /** As `createRouter`, which is how to call it. */
  constructor(options: RouterOptions, host: RouterHost = { entryPoint: "KvRouter" }) {
    checkOptions(options);
    const blockSize = options.blockSize === undefined ? 64 : options.blockSize;
    checkBlockSize(blockSize);
    this.model = options.model ?? "default";
    this.blockSize = blockSize;
    this.config = parseConfig(options.config);
    this.clock = options.clock ?? systemClock;
    this.ownNames = options.blockNames === "sequence";
    this.plugins = bundleOf(options);
    this.#options = options;
    const log = options.log ?? consoleLogger;
    this.#log = log;
    const seed =
      options.seed === undefined
        ? crypto.getRandomValues(new BigUint64Array(1))[0]!
        : parseU64(options.seed, "seed", "invalid_config");
    this.#pools = new Pools({
      model: this.model,
      blockSize,
      config: this.config,
      ownNames: this.ownNames,
      maxRanks: options.maxRanks,
      budgetBytes: options.memoryBudgetBytes,
      wantsEvents: options.config?.useKvEvents === true,
      seed,
      clock: this.clock,
      log,
      requestIds: this.#requestIds,
      factory: selectionFactory(this.plugins),
    });
    this.#workers = new WorkerTable(this.#pools);
    this.#events = new CacheEvents(this.#workers, this.config.useKvEvents);
    this.#calls = new OpenAiCalls(this, options, host.edge);
    const classes = new PolicyClasses(profileOf(this.plugins.profiles, this.model));
    const random = new Random(poolSeed(seed, `${this.model}/classifier`));
    try {
      this.serveAt(host.entryPoint);
      this.#addFirst(options.workers ?? []);
      this.#installed = install(this.plugins, {
        options,
        blockSize,
        classes,
        clock: this.clock,
        log,
        random: () => random.double(),
        workers: () => this.#workers.capacity(),
      });
      const { classifier } = this.#installed;
      this.#admission = new Admission({
        classes,
        clock: this.clock,
        requestIds: this.#requestIds,
        classifier,
        isOver: () => this.#ended,
      });
    } catch (error) {
      void this.#pools.close();
      throw error;
    }
  }

  #addFirst(workers: readonly WorkerInput[]): void {
    for (const [i, worker] of workers.entries()) {
      const record = parseWorker(worker, `workers[${i}]`);
      if (this.#workers.has(record.workerId)) {
        throw new WarmrouteError("invalid_worker", `workers[${i}] repeats the worker ${record.workerId}`, {
          path: `workers[${i}].workerId`,
        });
      }
      this.#add(record);
    }
    // A router that starts empty still finds out now whether its policy can be built.
    if (workers.length === 0) this.#defaultPool();
  }

  #defaultPool(): SelectionCore {
    const pool = this.#pools.get(DEFAULT_GROUP, "aggregated");
    return pool ?? this.#workers.exclusively(() => this.#pools.open(DEFAULT_GROUP, "aggregated"));
  }

  #add(record: WorkerRecord): WorkerRecord {
    for (const entryPoint of this.#entryPoints) assertServed(entryPoint, record);
    return this.#workers.add(record);
  }

  /** Takes part in one more entry point. Throws `role_not_served` or `classifier_not_supported`. */
  serveAt(entryPoint: EntryPointName): void {
    assertHonoured(entryPoint, this.plugins);
    for (const worker of this.#workers.list()) assertServed(entryPoint, worker);
    this.#entryPoints.add(entryPoint);
  }

  // ---- decisions

  async select(request: SelectRequest, options: CallOptions = {}): Promise<Selection> {
    this.#assertOpen();
    checkCallOptions(options);
    const { signal } = options;
    signal?.throwIfAborted();
    checkSelect(request);
    const core = this.#poolFor(request);
    if (!core) throw noPool(request);
    return this.#admission.begin(core, request, this.#attributesOf(options), signal);
  }

  route(body: Record<string, unknown>, options: RouteOptions = {}): Promise<Selection> {
    return this.#calls.route(body, options);
  }

  generate(body: Record<string, unknown>, options: RouteOptions = {}): AsyncGenerator<unknown, void> {
    return this.#calls.generate(body, options);
  }

  /** Bound, so that it can be handed to a server as it is. */
  readonly fetch = (request: Request): Promise<Response> => this.#calls.fetch(request);

  probe(request: Omit<SelectRequest, "requestId">): ProbeResult {
    return this.#probe(request, "probe");
  }

  bestWorker(request: Omit<SelectRequest, "requestId">): WorkerRank {
    const { outcome, selected } = this.#probe(request, "bestWorker");
    if (outcome !== "selected") throw outcomeError(outcome);
    return selected!;
  }

  #probe(request: Omit<SelectRequest, "requestId">, call: string): ProbeResult {
    this.#assertOpen();
    checkSelect(request);
    this.#installed.classifier?.bypass(call);
    const attributes = this.#attributesOf({});
    const core = this.#poolFor(request);
    if (!core) return { outcome: "no_endpoints", selected: null, candidates: [], excluded: [] };
    return core.probe(attributes ? { ...request, attributes } : request);
  }

  #attributesOf({ headers, auth, body }: CallOptions): ReadonlyMap<string, string> | undefined {
    const { attributes } = this.#options;
    return attributes && readAttributes(attributes, { headers: readHeaders(headers), body, auth });
  }

  #poolFor({ routingGroup = DEFAULT_GROUP, role = "aggregated" }: SelectRequest): SelectionCore | undefined {
    return this.#pools.get(routingGroup, role);
  }

  overlap(
    prompt:
      | { tokens: Uint32Array | readonly number[]; loraName?: string; cacheSalt?: string }
      | { blockHashes: BigUint64Array | readonly U64Input[] },
  ): OverlapRow[] {
    this.#assertOpen();
    checkOverlap(prompt);
    const core = this.#defaultPool();
    assertIndex(core, "overlap()");
    const { kernel } = core;
    let blocks: number;
    if ("tokens" in prompt && prompt.tokens !== undefined) {
      const n = kernel.writeTokens(prompt.tokens);
      const seed = kernel.localSeed(prompt.loraName, prompt.cacheSalt);
      blocks = kernel.hashPrompt(n, this.blockSize, seed);
    } else {
      const hashes = (prompt as { blockHashes: BigUint64Array | readonly U64Input[] }).blockHashes;
      blocks = hashes.length;
      const { locals } = kernel.roomForEvent(blocks);
      for (let i = 0; i < blocks; i++) locals[i] = parseU64(hashes[i], `blockHashes[${i}]`);
      if (kernel.exports.chainEvent(blocks) < 0) throw budgetError(`a chain of ${blocks} blocks`);
    }
    return core.contents.overlap(blocks);
  }

  reserve(request: ReserveRequest): Booking {
    this.#assertOpen();
    const { workerId, dpRank, charged } = checkReserve(request);
    const { core, rank } = this.#workers.rank(workerId, dpRank);
    if (!rank) throw unknownWorker(workerId, dpRank);
    return core!.reserve(request.requestId, rank, request.sequenceHashes, request.islTokens, charged);
  }

  /** The live booking of a request, also one that restore() took over. */
  booking(requestId: string): Booking | undefined {
    return this.#requestIds.get(requestId);
  }

  // ---- cache contents

  applyEvent(event: unknown): EventResult {
    this.#assertNotEnded();
    return this.#events.apply(event);
  }

  /** The typed form of a `stored` event: no JSON, no strings. Throws `invalid_event` when the lists differ in length. */
  storeBlocks(
    at: WorkerRank,
    tier: StorageTier,
    parent: bigint | null,
    names: BigUint64Array,
    localHashes: BigUint64Array,
  ): EventResult {
    return this.#events.store(at, tier, parent, names, localHashes);
  }

  /** The typed form of a `removed` event. Returns how many of the blocks the rank held. */
  removeBlocks(at: WorkerRank, tier: StorageTier, names: BigUint64Array): number {
    return this.#events.remove(at, tier, names);
  }

  // ---- workers

  /**
   * Adds a worker with all its ranks, or updates the one with its id: ranks that stay keep their cache contents
   * and bookings, unless the incarnation is another. All or nothing. Throws `invalid_worker`, `role_not_served`,
   * `too_many_ranks`, `memory_budget`, or what building the pool's policy throws.
   */
  addWorker(input: WorkerInput): WorkerRecord {
    this.#assertOpen();
    return this.#add(parseWorker(input));
  }

  removeWorker(workerId: U64Input): boolean {
    this.#assertNotEnded();
    return this.#workers.remove(workerIdString(workerId, "workerId", "invalid_request"));
  }

  workers(): WorkerRecord[] {
    return this.#workers.list();
  }

  // ---- state

  loads(): LoadRow[] {
    return [...this.#pools]
      .flatMap((core) => core.loads())
      .sort((a, b) => {
        if (a.workerId === b.workerId) return a.dpRank - b.dpRank;
        return BigInt(a.workerId) < BigInt(b.workerId) ? -1 : 1;
      });
  }

  stats(): RouterStats {
    const cores = [...this.#pools];
    const sum = (f: (core: SelectionCore) => number) => cores.reduce((total, core) => total + f(core), 0);
    const { classifier } = this.#installed;
    return {
      index: {
        blocks: sum((core) => core.counter(Counter.heldBlocks)),
        bytes: sum((core) => core.counter(Counter.bytes)),
        budgetBytes: sum((core) => core.counter(Counter.budget)),
        orphans: sum((core) => core.contents.orphans),
        refused: this.#events.refused + sum((core) => core.contents.refused),
        duplicates: sum((core) => core.counter(Counter.duplicates)),
      },
      bookings: { live: this.#requestIds.size, forgotten: 0, expired: 0 },
      queue: { pending: 0, pendingIslTokens: 0, byClass: {}, unknownClasses: this.#admission.unknownClasses },
      ...(classifier && { classifier: classifier.stats() }),
      decisions: sum((core) => core.decisions),
    };
  }

  snapshot(options: { include?: readonly SnapshotPart[] } = {}): Uint8Array {
    this.#assertNotEnded();
    return writeSnapshot(this.#state(), readParts(options, "include"));
  }

  /**
   * Replaces the given parts of the state by the snapshot's; all of it or, when refused, none. Add the workers first:
   * what the snapshot says of ranks that are not here is dropped, and counted in the answer. Throws
   * `snapshot_<reason>`, `memory_budget` or `invalid_request`.
   */
  restore(bytes: Uint8Array, options: { parts?: readonly SnapshotPart[] } = {}): RestoreResult {
    this.#assertOpen();
    const parts = readParts(options, "parts");
    const newKernel = (pool: string) => this.#pools.kernel(pool);
    return this.#workers.exclusively(() => readSnapshot(bytes, this.#state(), newKernel, parts));
  }

  #state() {
    const { model, blockSize, ownNames } = this;
    return { model, blockSize, ownNames, pools: this.#pools.byName };
  }

  /**
   * Refuses new requests at once. Those that are live may end within `graceMs` (0 unless given), and their events and
   * workers come and go until then; the rest is aborted, and classifier and policies are closed. A second call waits
   * for the first. Rejects with `invalid_request` for a bad `graceMs`.
   */
  async close(options: { graceMs?: number } = {}): Promise<void> {
    const graceMs = readGraceMs(options);
    this.#closing = true;
    this.#closed ??= this.#close(graceMs);
    return this.#closed;
  }

  async #close(graceMs: number): Promise<void> {
    const end = systemClock.now() + graceMs;
    // Polled: in an isolate, no request may wait for what another one does.
    for (let left = graceMs; left > 0 && this.#live > 0; left = end - systemClock.now()) {
      await new Promise((resolve) => setTimeout(resolve, Math.min(left, drainPollMs)));
    }
    this.#ended = true;
    for (const core of this.#pools) for (const booking of core.bookings) booking.abort(closing());
    const plugins = Promise.all([this.#installed.classifier?.close(), this.#pools.close()]);
    const patienceMs = Math.max(end - systemClock.now(), pluginPatienceMs);
    if (!(await endsWithin(patienceMs, plugins))) {
      this.#log.warn("a plugin has not ended with its close(); the router goes without it", { patienceMs });
    }
  }

  /** Requests that are booked or being classified. */
  get #live(): number {
    return Math.max(this.#requestIds.size, this.#installed.classifier?.stats().live ?? 0);
  }

  /** Ends every live booking. */
  freeAll(): void {
    for (const core of this.#pools) for (const booking of core.bookings) booking.free();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** For what begins something. */
  #assertOpen(): void {
    if (this.#closing) throw closing();
  }

  /** For what requests that are still live depend on. */
  #assertNotEnded(): void {
    if (this.#ended) throw closing();
  }
}

/** Whether something ends in time; it must not reject. Arms a timer only meanwhile. */
async function endsWithin(ms: number, something: Promise<unknown>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, ms, false);
  });
  const inTime = await Promise.race([something.then(() => true), late]);
  clearTimeout(timer);
  return inTime;
}

const closing = () => new WarmrouteError("shutting_down", "the router is closed");

function noPool({ routingGroup, role = "aggregated" }: SelectRequest): WarmrouteError {
  const of = routingGroup === undefined ? "" : ` of the routing group ${describe(routingGroup)}`;
  const path = routingGroup === undefined ? "role" : "routingGroup";
  return new WarmrouteError("no_endpoints", `there is no ${role} worker${of}`, { path });
}

function unknownWorker(workerId: string, dpRank: number): WarmrouteError {
  return new WarmrouteError("unknown_worker", `worker ${workerId} has no rank ${dpRank}`, {
    details: { workerId, dpRank },
  });
}
