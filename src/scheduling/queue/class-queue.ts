import { WarmrouteError } from "../../core/errors.js";
import type { PolicyClass } from "../../plugins/policy/contract.js";
import type { LaneKey, Parked, QueuePool } from "./contract.js";
import type { RingClass } from "./drr.js";
import { Lane } from "./lane.js";
import { isBefore, type Waiter } from "./waiter.js";

/** Later requests that may pass the first of a lane whose ranks are busy, on ranks that it could use too. */
export const maxBypass = 64;

/** The waiting requests of one policy class. */
export class ClassQueue implements RingClass {
  readonly policyClass: PolicyClass;
  size = 0;
  rawTokens = 0;
  cachedTokens = 0;
  readonly #pool: QueuePool;
  readonly #now: () => number;
  readonly #maxWaitMs: number;
  /** By strict tier and key. */
  readonly #lanes = new Map<string, Lane>();
  /** The last to go had waited too long below another tier: the next turn is the tiers'. */
  #tiersTurn = false;

  /** Requests in a lower strict tier wait at most about `maxWaitMs` behind a higher one; 0: for ever. */
  constructor(policyClass: PolicyClass, pool: QueuePool, now: () => number, maxWaitMs: number) {
    this.policyClass = policyClass;
    this.#pool = pool;
    this.#now = now;
    this.#maxWaitMs = maxWaitMs > 0 ? maxWaitMs : Number.POSITIVE_INFINITY;
  }

  get quantum(): number {
    return this.policyClass.quantum;
  }

  /** Whether a rank has too much to prefill to take a request of this class. */
  readonly isBusy = (slot: number): boolean => {
    const { prefillBusyThreshold: tokens, prefillBusyThresholdFrac: fraction } = this.policyClass;
    const active = this.#pool.activePrefillTokens(slot);
    if (tokens !== undefined && active > tokens) return true;
    return fraction !== undefined && active > fraction * this.#pool.maxNumBatchedTokens(slot);
  };

  /** Whether requests wait for one of a lane's ranks, which are `slots`. */
  waitsFor({ key }: LaneKey, slots: readonly number[]): boolean {
    if (this.size === 0) return false;
    const lanes = [...this.#lanes.values()];
    if (lanes.some((lane) => lane.key === key)) return true;
    const ranks = new Set(slots);
    return lanes.some((lane) => lane.sharesWith(ranks));
  }

  /** Throws `queue_rejected` when the class may not have one more (spec: scheduling.md §5.5). */
  assertRoom(): void {
    const { requestQueueLimitPerWorker, rawIslTokenQueueLimitPerWorker, cachedTokenQueueLimitPerWorker } =
      this.policyClass;
    this.#assertBelow("requests", this.size, requestQueueLimitPerWorker);
    this.#assertBelow("raw_isl_tokens", this.rawTokens, rawIslTokenQueueLimitPerWorker);
    this.#assertBelow("cached_tokens", this.cachedTokens, cachedTokenQueueLimitPerWorker);
  }

  #assertBelow(limitKind: string, current: number, perWorker: number | undefined): void {
    if (perWorker === undefined) return;
    const limit = perWorker * this.#pool.workers;
    if (current < limit) return;
    const { name } = this.policyClass;
    throw new WarmrouteError("queue_rejected", `the queue of the class ${name} is full: ${current} ${limitKind}`, {
      details: { policyClass: name, limitKind, current, limit },
    });
  }

  /** The lane of a request, made if it is not there. */
  #laneOf({ parked }: Waiter): Lane {
    const key = keyOf(parked);
    let there = this.#lanes.get(key);
    if (!there) {
      there = new Lane(parked.lane, this.#pool, this.isBusy);
      this.#lanes.set(key, there);
    }
    return there;
  }

  /** Lets a request wait; answers whether it is the first of its lane to do so. */
  add(waiter: Waiter): boolean {
    const lane = this.#laneOf(waiter);
    lane.add(waiter);
    this.#count(waiter, 1);
    return lane.size === 1;
  }

  /** Takes out a request that waits here. */
  remove(waiter: Waiter): void {
    const lane = this.#laneOf(waiter);
    lane.remove(waiter);
    if (lane.size === 0) this.#lanes.delete(keyOf(waiter.parked));
    this.#count(waiter, -1);
  }

  #count({ parked }: Waiter, by: 1 | -1): void {
    this.size += by;
    this.rawTokens += by * parked.rawTokens;
    this.cachedTokens += by * parked.cachedTokens;
  }

  /** The load of a rank changed; of any rank without a slot. */
  changed(slot?: number): void {
    for (const lane of this.#lanes.values()) lane.changed(slot);
  }

  nextCost(): number | undefined {
    return this.next()?.parked.costTokens;
  }

  /** The request that may go next; undefined when none may. */
  next(): Waiter | undefined {
    const open = this.#openLanes();
    let best: Waiter | undefined;
    for (const { first } of open) if (!best || isBefore(first!, best)) best = first!;
    if (!best || this.#tiersTurn) return best;
    return this.#overdue(open, best.tier) ?? best;
  }

  /** Lets the request that `next` answered go ahead. */
  take(waiter: Waiter): void {
    const lane = this.#laneOf(waiter);
    this.#tiersTurn = false;
    const latest = this.#now() - this.#maxWaitMs;
    for (const other of this.#lanes.values()) {
      const { first } = other;
      if (first === waiter || !isBefore(first!, waiter)) continue;
      if (first!.tier > waiter.tier && waiter.sinceMs <= latest) this.#tiersTurn = true;
      else if (lane.sharesWith(other.slots)) first!.bypassed++;
    }
    this.remove(waiter);
  }

  /** Lanes whose first request may go. */
  #openLanes(): Lane[] {
    const lanes = [...this.#lanes.values()];
    return lanes.filter((lane) => lane.mayGo(this.keptFrom(lane.first!)));
  }

  /** Slots that are kept for requests that come before this one and were passed too often; undefined for none. */
  keptFrom(waiter: Waiter): ReadonlySet<number> | undefined {
    let kept: Set<number> | undefined;
    for (const { first, slots } of this.#lanes.values()) {
      if (first!.bypassed < maxBypass || first === waiter || !isBefore(first!, waiter)) continue;
      kept ??= new Set();
      for (const slot of slots) kept.add(slot);
    }
    return kept;
  }

  /** The one that has waited longest, of those that wait too long below a tier. */
  #overdue(lanes: readonly Lane[], tier: number): Waiter | undefined {
    const latest = this.#now() - this.#maxWaitMs;
    let oldest: Waiter | undefined;
    for (const { oldest: waiter } of lanes) {
      if (waiter!.tier >= tier || waiter!.sinceMs > latest) continue;
      if (!oldest || waiter!.sequence < oldest.sequence) oldest = waiter!;
    }
    return oldest;
  }

  *[Symbol.iterator](): IterableIterator<Waiter> {
    for (const lane of this.#lanes.values()) yield* lane.waiters();
  }
}

const keyOf = ({ strictPriority, lane }: Parked) => `${strictPriority} ${lane.key}`;
