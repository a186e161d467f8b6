import type { Clock } from "../core/clock.js";
import type { KvRouterConfig } from "../core/config.js";
import type { Logger } from "../core/log.js";
import type { WorkerRole } from "../core/types.js";
import { Kernel } from "../kernel/kernel.js";
import { defaultBudget } from "../kernel/module.js";
import type { PolicyClass } from "../plugins/policy/contract.js";
import type { WorkerSelectionFactory } from "../plugins/worker-selection/contract.js";
import type { RequestIds } from "../scheduling/bookings/request-ids.js";
import { type BusyThresholds, thresholdsOf } from "../scheduling/overload.js";
import { createPool } from "../scheduling/policy-factory.js";
import { poolSeed } from "../scheduling/pool-seed.js";
import type { PrefillLoadModel } from "../scheduling/prefill-model.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
import { assertIndex } from "./construct.js";
import { countsOf, type PoolCounts, totalOf } from "./pool-counts.js";

/** Each has a kernel, so groups that come and go must not leave theirs behind. */
const mostEmpty = 8;

/** What all pools of a router have in common. */
export interface PoolSettings {
  readonly model: string;
  readonly blockSize: number;
  readonly config: KvRouterConfig;
  /** Blocks are named by their sequence hashes. */
  readonly ownNames: boolean;
  readonly maxRanks: number | undefined;
  readonly budgetBytes: number | undefined;
  /** The host asks for engine events by name, so that a policy without an index is an error. */
  readonly wantsEvents: boolean;
  readonly seed: bigint;
  readonly clock: Clock;
  readonly log: Logger;
  readonly requestIds: RequestIds;
  readonly sweep: () => void;
  readonly prefillLoadModel: PrefillLoadModel | undefined;
  readonly classes: readonly PolicyClass[];
  readonly factory: WorkerSelectionFactory;
}

/** The pools of a router by routing group and role; each has a kernel, a generator and a policy of its own. */
export class Pools {
  readonly #settings: PoolSettings;
  readonly #pools = new Map<string, SelectionCore>();
  #thresholds: BusyThresholds | undefined;
  /** What the pools that are gone have counted. */
  #gone = totalOf([]);

  constructor(settings: PoolSettings) {
    this.#settings = settings;
  }

  get(routingGroup: string, role: WorkerRole): SelectionCore | undefined {
    return this.#pools.get(nameOf(routingGroup, role));
  }

  /** The pool, made if it is not there; the policy's factory is called once for it. Throws what `createPool` throws. */
  open(routingGroup: string, role: WorkerRole): SelectionCore {
    const name = nameOf(routingGroup, role);
    const found = this.#pools.get(name);
    if (found) return found;
    const { config, requestIds, factory, clock, log, model, wantsEvents, sweep, prefillLoadModel, classes } =
      this.#settings;
    const kernel = this.kernel(name);
    const partition = { model, routingGroup };
    const made = createPool({
      ...{ kernel, config, role, requestIds, factory, partition, clock, log, sweep, classes },
      ...(prefillLoadModel && { prefillLoadModel }),
    });
    try {
      if (wantsEvents) assertIndex(made, "config.useKvEvents");
    } catch (error) {
      void made.close();
      throw error;
    }
    if (this.#thresholds) made.overload.set(this.#thresholds);
    this.#pools.set(name, made);
    return made;
  }

  /** Takes back a pool that was opened in vain. */
  discard(routingGroup: string, role: WorkerRole): void {
    this.#drop(nameOf(routingGroup, role));
  }

  /** Lets go of pools that have no ranks, but for a few whose workers may come back: those that were made last. */
  trim(): void {
    const empty = [...this.#pools].filter(([, core]) => core.ranks.workers === 0);
    for (const [name] of empty.slice(0, -mostEmpty)) this.#drop(name);
  }

  #drop(name: string): void {
    const core = this.#pools.get(name);
    if (!core) return;
    this.#pools.delete(name);
    this.#gone = totalOf([this.#gone, countsOf(core)]);
    void core.close();
  }

  /** What all pools have counted, with those that are gone. */
  counts(): PoolCounts {
    return totalOf([this.#gone, ...Array.from(this.#pools.values(), countsOf)]);
  }

  /** A kernel for a pool: its first one, or the one that a restored pool moves to. */
  kernel(name: string): Kernel {
    const { blockSize, maxRanks, budgetBytes, ownNames, seed, model } = this.#settings;
    return new Kernel({
      blockSize,
      maxRanks: maxRanks === undefined ? 16384 : maxRanks,
      budgetBytes: budgetBytes === undefined ? defaultBudget() : budgetBytes,
      ownNames,
      seed: poolSeed(seed, `${model}/${name}`),
    });
  }

  /** The busy thresholds of all pools. */
  get thresholds(): BusyThresholds {
    return this.#thresholds ?? thresholdsOf(this.#settings.config);
  }

  /** Sets the busy thresholds, also of pools to come. */
  setThresholds(thresholds: BusyThresholds): void {
    this.assertFree();
    this.#thresholds = thresholds;
    for (const core of this.#pools.values()) {
      core.overload.set(thresholds);
      core.queue.changed();
    }
  }

  /** Throws `policy_failed` while a policy's components run. For what changes more than one thing. */
  assertFree(): void {
    for (const core of this) core.kernel.assertFree();
  }

  get byName(): ReadonlyMap<string, SelectionCore> {
    return this.#pools;
  }

  [Symbol.iterator](): MapIterator<SelectionCore> {
    return this.#pools.values();
  }

  /** Closes every policy. Never rejects. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#pools.values(), (core) => core.close()));
  }
}

const nameOf = (routingGroup: string, role: WorkerRole) => `${routingGroup}/${role}`;
