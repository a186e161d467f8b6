import type { LaneKey, QueuePool } from "./contract.js";
import { Heap } from "./heap.js";
import { isBefore, type Waiter } from "./waiter.js";

/** The waiting requests of one class and one strict tier that may go to the same ranks. */
export class Lane {
  readonly #key: LaneKey;
  readonly #pool: QueuePool;
  readonly #isBusy: (slot: number) => boolean;
  readonly #heap = new Heap<Waiter>(isBefore);
  /** The same by age. */
  readonly #byAge = new Set<Waiter>();
  #slots: ReadonlySet<number> = new Set();
  #topology = Number.NaN;
  /** Slots that may have room, of those above; all while undefined. */
  #unsure: Set<number> | undefined;

  constructor(key: LaneKey, pool: QueuePool, isBusy: (slot: number) => boolean) {
    this.#key = key;
    this.#pool = pool;
    this.#isBusy = isBusy;
  }

  get key(): string {
    return this.#key.key;
  }
  get size(): number {
    return this.#heap.size;
  }
  get first(): Waiter | undefined {
    return this.#heap.first;
  }
  get oldest(): Waiter | undefined {
    return this.#byAge.values().next().value;
  }

  /** In the order in which they were parked. */
  waiters(): Waiter[] {
    return [...this.#byAge];
  }

  add(waiter: Waiter): void {
    this.#heap.add(waiter);
    this.#byAge.add(waiter);
  }

  remove(waiter: Waiter): void {
    this.#heap.remove(waiter);
    this.#byAge.delete(waiter);
  }

  /** The load of a rank changed; of any rank without a slot. */
  changed(slot?: number): void {
    if (slot === undefined) this.#unsure = undefined;
    else if (this.slots.has(slot)) this.#unsure?.add(slot);
  }

  /** Ranks that may take the lane's requests, as the pool is now. */
  get slots(): ReadonlySet<number> {
    if (this.#topology !== this.#pool.topology) {
      this.#topology = this.#pool.topology;
      this.#slots = new Set(this.#key.slots());
      this.#unsure = undefined;
    }
    return this.#slots;
  }

  /** Whether a request of the lane may go: a rank that is not kept for others has room, or there is none to wait for. */
  mayGo(kept: ReadonlySet<number> | undefined): boolean {
    const { slots } = this;
    if (slots.size === 0) return true;
    if (kept) return [...slots].some((slot) => !kept.has(slot) && !this.#isBusy(slot));
    for (const slot of this.#unsure ?? slots) if (!this.#isBusy(slot)) return true;
    // Until one of its ranks changes.
    this.#unsure = new Set();
    return false;
  }

  /** Whether some rank may take requests of both. */
  sharesWith(slots: ReadonlySet<number>): boolean {
    const [few, many] = slots.size < this.slots.size ? [slots, this.slots] : [this.slots, slots];
    for (const slot of few) if (many.has(slot)) return true;
    return false;
  }
}
