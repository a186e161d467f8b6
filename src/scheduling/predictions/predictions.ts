// What ranks are believed to hold because prompts were sent there: all that is known where there are no engine events
// (approximate mode), beside them otherwise (predict on route). The blocks are records of the kernel
// (assembly/load/bookings.ts), shared between prompts; when they end is decided here (spec: indexer.md §3):
//
//   no events, and the rank's capacity is known   what was used least recently, tail first, once the rank is full
//   otherwise                                     some time after the decision
import type { Clock } from "../../core/clock.js";
import type { KvRouterConfig } from "../../core/config.js";
import { Answer } from "../../kernel/abi.js";
import type { Kernel } from "../../kernel/kernel.js";
import type { PoolBooking } from "../bookings/booking.js";
import type { PoolRank, PoolRanks } from "../ranks.js";
import type { PredictionState, PredictionStats } from "./contract.js";
import { BelievedCache, Prediction, type PredictionOwner } from "./prediction.js";

/** What predictions need of their pool. */
interface PredictedPool {
  readonly kernel: Kernel;
  readonly ranks: PoolRanks;
  readonly config: KvRouterConfig;
  readonly unitsPerToken: number;
}

/** The predictions of one pool. */
export class Predictions implements PredictionOwner {
  readonly #pool: PredictedPool;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  #caches: (BelievedCache | undefined)[] = [];
  /** Those that time ends, soonest first. */
  readonly #timed = new Set<Prediction>();
  #dropped = 0;

  constructor(pool: PredictedPool, clock: Clock, ttlMs: number) {
    this.#pool = pool;
    this.#clock = clock;
    this.#ttlMs = ttlMs;
  }

  get stats(): PredictionStats {
    let live = this.#timed.size;
    for (const cache of this.#caches) live += cache ? cache.used.size + cache.released.size : 0;
    return { live, dropped: this.#dropped };
  }

  /** Ends those whose time is over. */
  expire(): void {
    const now = this.#clock.now();
    for (const prediction of this.#timed) {
      if (prediction.expiresAtMs > now) return;
      this.#end(prediction);
    }
  }

  /** The prediction in the kernel's answer row follows its booking, whose prompt has so many complete blocks. */
  follow(booking: PoolBooking, blocks: number): void {
    const { answer, blockSize } = this.#pool.kernel;
    const id = answer[Answer.prediction]!;
    if (id === 0) {
      this.#dropped++;
      this.makeRoom();
      return;
    }
    const cache = this.#cacheOf(booking.slot);
    const prediction = new Prediction(this, cache, id, answer[Answer.predictionGeneration]!, blocks);
    prediction.heldBefore = blocks - answer[Answer.predictedBlocks]!;
    if (this.#capacityOf(cache) === undefined) {
      prediction.expiresAtMs = this.#clock.now() + this.#ttlMs;
      this.#timed.add(prediction);
    } else {
      cache.used.add(prediction);
      prediction.ownTokens = Math.max(0, booking.inputTokens - blocks * blockSize);
      this.#lengthen(prediction);
    }
    prediction.requestId = booking.requestId;
    booking.observe(prediction);
  }

  /** `more` tokens follow what the prediction has. */
  grow(prediction: Prediction, more: number): void {
    const { cache } = prediction;
    if (!cache.used.has(prediction)) return;
    prediction.ownTokens += more;
    this.#lengthen(prediction);
    this.#evict(cache);
  }

  reach(prediction: Prediction, tokens: number): void {
    const { blocks, ownTokens } = prediction;
    this.grow(prediction, Math.max(0, tokens - blocks * this.#pool.kernel.blockSize - ownTokens));
  }

  /** Counts the blocks of what is shared with no other prompt. */
  #lengthen(prediction: Prediction): void {
    const own = Math.ceil(prediction.ownTokens / this.#pool.kernel.blockSize);
    prediction.cache.ownBlocks += own - prediction.ownBlocks;
    prediction.ownBlocks = own;
  }

  /** The request of a prediction is over: what it left may make room for others. */
  release(prediction: Prediction): void {
    const { cache } = prediction;
    if (!cache.used.delete(prediction)) return;
    cache.released.add(prediction);
    this.#evict(cache);
  }

  /** The request of a prediction was never sent: the rank holds what it held before. */
  undo(prediction: Prediction): void {
    const { kernel } = this.#pool;
    if (kernel.isHeld) kernel.postpone(() => this.#undo(prediction));
    else this.#undo(prediction);
  }

  #undo(prediction: Prediction): void {
    const { cache, heldBefore } = prediction;
    if (!cache.used.has(prediction) || heldBefore === 0) {
      this.#end(prediction);
      return;
    }
    // Of what was there before, only this one may have kept some from being evicted: the first to go.
    cache.used.delete(prediction);
    cache.ownBlocks -= prediction.ownBlocks;
    prediction.ownBlocks = 0;
    this.#keep(prediction, heldBefore);
    const later = [...cache.released];
    cache.released.clear();
    cache.released.add(prediction);
    for (const one of later) cache.released.add(one);
  }

  /** Ends the oldest quarter, for the memory budget; whether there were any. */
  makeRoom(): boolean {
    let ended = 0;
    for (const set of [this.#timed, ...this.#caches.map((cache) => cache?.released)]) {
      let quarter = Math.ceil((set?.size ?? 0) / 4);
      for (const prediction of set ?? []) {
        if (quarter-- === 0) break;
        this.#end(prediction);
        ended++;
      }
    }
    this.#dropped += ended;
    return ended > 0;
  }

  /** A rank holds nothing any more. */
  clear({ slot }: PoolRank): void {
    const cache = this.#caches[slot];
    for (const prediction of this.#all()) if (prediction.cache === cache) this.#end(prediction);
  }

  // ---- a kernel with restored state

  /** All of them, each rank's in the order in which they end. */
  states(): PredictionState[] {
    const now = this.#clock.now();
    return this.#all().map(({ cache, expiresAtMs, requestId, ...prediction }) => {
      const { id, generation, ownBlocks, ownTokens, heldBefore, answered } = prediction;
      return {
        ...{ id, generation, slot: cache.slot, ownBlocks, ownTokens, heldBefore, answered },
        ...(Number.isFinite(expiresAtMs) && { expiresInMs: Math.max(0, expiresAtMs - now) }),
        ...(requestId !== undefined && { requestId }),
      };
    });
  }

  /** The ranks of the predictions have other slots now. */
  moved(slots: ReadonlyMap<number, number>): void {
    const before = this.#caches;
    this.#caches = [];
    for (const cache of before) {
      if (!cache) continue;
      cache.slot = slots.get(cache.slot)!;
      this.#caches[cache.slot] = cache;
    }
  }

  /** The kernel has other records now: forgets all predictions. */
  forget(): void {
    for (const prediction of this.#all()) prediction.id = 0;
    this.#timed.clear();
    this.#caches = [];
  }

  /** Takes those of a snapshot over, after forget() and after its bookings. */
  adopt(
    states: readonly PredictionState[],
    slots: ReadonlyMap<number, number>,
    bookingOf: (requestId: string) => PoolBooking | undefined,
  ): void {
    const { exports } = this.#pool.kernel;
    const now = this.#clock.now();
    const left = (state: PredictionState) => state.expiresInMs ?? this.#ttlMs;
    const soonestFirst = [...states].sort((a, b) => left(a) - left(b));
    for (const { slot: named, expiresInMs, requestId, ...state } of soonestFirst) {
      const slot = slots.get(named);
      if (slot === undefined) continue;
      const cache = this.#cacheOf(slot);
      const { id, generation, ownBlocks, ownTokens, heldBefore, answered } = state;
      const blocks = exports.bookingBlocks(id, generation);
      const prediction = new Prediction(this, cache, id, generation, blocks);
      const booking = requestId === undefined ? undefined : bookingOf(requestId);
      Object.assign(prediction, { ownBlocks, ownTokens, answered, requestId: booking?.requestId });
      prediction.heldBefore = Math.min(heldBefore, blocks);
      cache.ownBlocks += ownBlocks;
      if (this.#capacityOf(cache) === undefined) {
        prediction.expiresAtMs = now + Math.min(expiresInMs ?? this.#ttlMs, this.#ttlMs);
        this.#timed.add(prediction);
      } else if (booking) cache.used.add(prediction);
      else cache.released.add(prediction);
      booking?.observe(prediction);
    }
    for (const cache of this.#caches) if (cache) this.#evict(cache);
  }

  /** The capacity of a rank may be another now. */
  resized({ slot }: PoolRank): void {
    const cache = this.#caches[slot];
    if (cache) this.#evict(cache);
  }

  // ----

  #all(): Prediction[] {
    const ofCaches = this.#caches.flatMap((cache) => (cache ? [...cache.released, ...cache.used] : []));
    return [...this.#timed, ...ofCaches];
  }

  #cacheOf(slot: number): BelievedCache {
    this.#caches[slot] ??= new BelievedCache(slot);
    return this.#caches[slot];
  }

  /** In blocks; undefined where time decides. */
  #capacityOf({ slot }: BelievedCache): number | undefined {
    const { config, ranks, unitsPerToken } = this.#pool;
    const { totalKvBlocks } = ranks.at(slot).record;
    return config.useKvEvents || totalKvBlocks === undefined ? undefined : totalKvBlocks * unitsPerToken;
  }

  /** Evicts until the rank holds no more than it can, or nothing is left that no request uses. */
  #evict(cache: BelievedCache): void {
    const { kernel } = this.#pool;
    if (kernel.failed) return;
    if (kernel.isHeld) {
      kernel.postpone(() => this.#evict(cache));
      return;
    }
    const capacity = this.#capacityOf(cache) ?? Number.POSITIVE_INFINITY;
    for (const oldest of cache.released) {
      const held = kernel.exports.believedBlocks(cache.slot);
      let excess = held + cache.ownBlocks - capacity;
      if (excess <= 0) return;
      const own = Math.min(oldest.ownBlocks, excess);
      oldest.ownBlocks -= own;
      cache.ownBlocks -= own;
      excess -= own;
      if (excess === 0) return;
      this.#keep(oldest, Math.max(0, oldest.blocks - excess));
      // If fewer went than were cut off, the first that stayed is another prompt's, and so are all before it.
      if (oldest.blocks === 0 || held - kernel.exports.believedBlocks(cache.slot) < excess) this.#end(oldest);
    }
  }

  /** Leaves the first blocks of a prediction. */
  #keep(prediction: Prediction, blocks: number): void {
    const { kernel } = this.#pool;
    prediction.blocks = blocks;
    if (kernel.failed) return;
    kernel.exports.predictionCut(prediction.id, prediction.generation, blocks);
    kernel.sync();
  }

  #end(prediction: Prediction): void {
    if (prediction.id === 0) return;
    const { cache } = prediction;
    this.#timed.delete(prediction);
    cache.used.delete(prediction);
    cache.released.delete(prediction);
    cache.ownBlocks -= prediction.ownBlocks;
    this.#keep(prediction, 0);
    prediction.id = 0;
  }
}
