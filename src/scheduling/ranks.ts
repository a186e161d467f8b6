import { WarmrouteError } from "../core/errors.js";
import type { WorkerRank, WorkerRecord } from "../core/types.js";
import { budgetError, type Kernel } from "../kernel/kernel.js";
import { Status } from "../kernel/status.js";

/** One rank of a pool, by slot. */
export interface PoolRank {
  readonly slot: number;
  record: WorkerRecord;
  readonly workerId: string;
  readonly dpRank: number;
  /** Its name as decisions give it. */
  readonly name: WorkerRank;
  /** The host says that it is overloaded. */
  marked: boolean;
  /** It may not be chosen for now: marked, or over a threshold (overload.ts). */
  overloaded: boolean;
  /** The host says that it may be chosen. */
  available: boolean;
}

/** The ranks of a pool: names and slots here, rows in the kernel. */
export class PoolRanks {
  #kernel: Kernel;
  #bySlot: (PoolRank | undefined)[] = [];
  #byWorker = new Map<string, Map<number, PoolRank>>();
  #freeSlots: number[] = [];
  #rows: PoolRank[] | undefined;
  /** Rises whenever ranks come, go, change, or may be chosen or not. */
  topology = 0;
  #listsLoras = false;
  #lorasAt = -1;

  constructor(kernel: Kernel) {
    this.#kernel = kernel;
  }

  /** Adds one rank. Throws `too_many_ranks` or `memory_budget`. */
  add(record: WorkerRecord, dpRank: number): void {
    const slot = this.#freeSlots.at(-1) ?? this.#bySlot.length;
    const status = this.#kernel.exports.rankAdd(slot, BigInt.asIntN(64, BigInt(record.workerId)), dpRank);
    if (status !== Status.ok) {
      if (status === Status.memoryBudget) throw budgetError("another rank");
      throw new WarmrouteError("too_many_ranks", `a pool holds at most ${this.#kernel.maxRanks} ranks`, {
        details: { maxRanks: this.#kernel.maxRanks },
      });
    }
    this.#freeSlots.pop();
    const name = Object.freeze({ workerId: record.workerId, dpRank });
    this.#put({ slot, record, ...name, name, marked: false, overloaded: false, available: true });
  }

  /** Removes a rank with its cache contents and its load. */
  remove(rank: PoolRank): void {
    this.#kernel.exports.clearEvent(rank.slot);
    this.#kernel.exports.rankRemove(rank.slot);
    const ofWorker = this.#byWorker.get(rank.workerId)!;
    ofWorker.delete(rank.dpRank);
    if (ofWorker.size === 0) this.#byWorker.delete(rank.workerId);
    this.#bySlot[rank.slot] = undefined;
    this.#rows = undefined;
    this.topology++;
    this.#freeSlots.push(rank.slot);
  }

  get(workerId: string, dpRank: number): PoolRank | undefined {
    return this.#byWorker.get(workerId)?.get(dpRank);
  }

  /** The ranks of one worker, in no order. */
  of(workerId: string): Iterable<PoolRank> {
    return this.#byWorker.get(workerId)?.values() ?? [];
  }

  /** The rank in a slot that the kernel answered. */
  at(slot: number): PoolRank {
    return this.#bySlot[slot]!;
  }

  /** Takes a rank out of every choice, or back in. */
  setOverloaded(rank: PoolRank, overloaded: boolean): void {
    this.#kernel.exports.rankFlags(rank.slot, flagsOf(overloaded, rank.available));
    rank.overloaded = overloaded;
    this.topology++;
  }

  /** Says whether a rank may be chosen at all. */
  setAvailable(rank: PoolRank, available: boolean): void {
    this.#kernel.exports.rankFlags(rank.slot, flagsOf(rank.overloaded, available));
    rank.available = available;
    this.topology++;
  }

  /** A rank goes on under another record of its worker. */
  update(rank: PoolRank, record: WorkerRecord): void {
    rank.record = record;
    this.topology++;
  }

  /** Whether any worker lists the adapters that it can serve. */
  get listsLoras(): boolean {
    if (this.#lorasAt !== this.topology) {
      this.#lorasAt = this.topology;
      this.#listsLoras = this.#bySlot.some((rank) => rank?.record.loras !== undefined);
    }
    return this.#listsLoras;
  }

  /** Workers that have a rank here. */
  get workers(): number {
    return this.#byWorker.size;
  }

  /** Every rank in row order: by worker id as u64, then rank. */
  [Symbol.iterator](): Iterator<PoolRank> {
    this.#rows ??= Array.from({ length: this.#kernel.exports.rankCount() }, (_, row) =>
      this.at(this.#kernel.exports.slotOf(row)),
    );
    return this.#rows[Symbol.iterator]();
  }

  /** Goes on with another kernel, in which each rank has the slot that `slots` maps its old one to. */
  move(kernel: Kernel, slots: ReadonlyMap<number, number>): void {
    const ranks = [...this];
    this.#kernel = kernel;
    this.#bySlot = [];
    for (const rank of ranks) this.#put({ ...rank, slot: slots.get(rank.slot)! });
    this.#freeSlots = [];
    for (let slot = 0; slot < this.#bySlot.length; slot++) if (!this.#bySlot[slot]) this.#freeSlots.push(slot);
  }

  #put(rank: PoolRank): void {
    this.#bySlot[rank.slot] = rank;
    this.#rows = undefined;
    this.topology++;
    let ofWorker = this.#byWorker.get(rank.workerId);
    if (!ofWorker) {
      ofWorker = new Map();
      this.#byWorker.set(rank.workerId, ofWorker);
    }
    ofWorker.set(rank.dpRank, rank);
  }
}

/** Bits of the kernel's rank flags (assembly/load/ranks.ts); either closes the rank's gate. */
export const flagsOf = (overloaded: boolean, available: boolean) => (overloaded ? 1 : 0) | (available ? 0 : 2);
