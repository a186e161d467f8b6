import type { PolicyClass } from "../../../src/plugins/policy/contract.js";
import type { LaneKey, Parked, QueuePool } from "../../../src/scheduling/queue/contract.js";
import { PoolQueue } from "../../../src/scheduling/queue/pool-queue.js";
import { VirtualClock } from "../../../src/testing/virtual-clock.js";

export const classOf = (name: string, more: Partial<PolicyClass> = {}): PolicyClass => ({
  ...{ name, queuePolicy: "fcfs", quantum: 100, prefillBusyThreshold: 0 },
  ...more,
});

/** A pool whose loads the test sets. */
export class Loads implements QueuePool {
  topology = 1;
  workers: number;
  readonly tokens: number[];
  batch = 1000;
  refreshed = 0;

  constructor(ranks: number) {
    this.workers = ranks;
    this.tokens = new Array(ranks).fill(0);
  }
  activePrefillTokens(slot: number): number {
    return this.tokens[slot]!;
  }
  maxNumBatchedTokens(): number {
    return this.batch;
  }
  refresh(): void {
    this.refreshed++;
  }
}

export interface Ask {
  policyClass: PolicyClass;
  slots?: readonly number[];
  strict?: number;
  jump?: number;
  due?: number;
  ingress?: number;
  raw?: number;
  cached?: number;
  cost?: number;
}

/** A queue over `ranks` ranks, and the order in which requests go. */
export function setUp(ranks: number, classes: readonly PolicyClass[], strictPriorityMaxWaitMs = 0) {
  const clock = new VirtualClock();
  const pool = new Loads(ranks);
  const queue = new PoolQueue({ pool, clock, classes, strictPriorityMaxWaitMs, recheckMs: 60_000 });
  const went: string[] = [];
  const failed: string[] = [];
  /** The slots that each was told to leave to others. */
  const kept: (number[] | undefined)[] = [];
  const all = pool.tokens.map((_, slot) => slot);
  const laneFor = (slots: readonly number[] = all): LaneKey => ({ key: String(slots), slots: () => slots });
  const parkedOf = (ask: Ask): Parked => ({
    policyClass: ask.policyClass,
    lane: laneFor(ask.slots),
    strictPriority: ask.strict ?? 0,
    priorityJump: ask.jump ?? 0,
    ingressAtMs: ask.ingress ?? clock.now(),
    dueAtMs: ask.due,
    rawTokens: ask.raw ?? 10,
    cachedTokens: ask.cached ?? 0,
    costTokens: ask.cost ?? Math.max(1, (ask.raw ?? 10) - (ask.cached ?? 0)),
  });
  /** Parks; as it goes it loads the least loaded of its ranks, unless it is told what to do. */
  const park = (name: string, ask: Ask, run?: () => void, signal?: AbortSignal) =>
    queue
      .park(
        parkedOf(ask),
        (keptSlots) => {
          went.push(name);
          kept.push(keptSlots && [...keptSlots]);
          if (run) return run();
          const slots = (ask.slots ?? all).filter((slot) => !keptSlots?.has(slot));
          const slot = slots.reduce((best, s) => (pool.tokens[s]! < pool.tokens[best]! ? s : best), slots[0]!);
          pool.tokens[slot]! += ask.raw ?? 10;
        },
        signal,
      )
      .catch((error) => {
        failed.push(`${name}: ${error.code ?? error.message}`);
        return error;
      });
  const free = async (slot: number) => {
    pool.tokens[slot] = 0;
    queue.changed(slot);
    await Promise.resolve();
    await Promise.resolve();
  };
  return { clock, pool, queue, went, kept, failed, laneFor, park, free };
}
