import type { Clock } from "../core/clock.js";
import { WarmrouteError } from "../core/errors.js";
import { describe, parseU64, type U64Input } from "../core/ids.js";
import { budgetError } from "../kernel/kernel.js";
import { type BookingOwner, type BookingState, PoolBooking } from "./bookings/booking.js";
import type { RequestIds } from "./bookings/request-ids.js";
import type { Pool } from "./pool.js";
import type { PrefillModel } from "./prefill-model.js";
import type { PoolRank } from "./ranks.js";

/** What the bookings of a pool tell it. */
export interface BookingsListener {
  /** The load of a rank fell. */
  roomAt(slot: number): void;
}

/** The bookings of one pool: handles here, charges in the kernel. Verbs are never refused by a running decision. */
export class PoolBookings implements BookingOwner {
  readonly #pool: Pool;
  readonly #ids: RequestIds;
  readonly #clock: Clock;
  readonly #listener: BookingsListener;
  readonly #prefillModel: PrefillModel | undefined;

  constructor(pool: Pool, ids: RequestIds, clock: Clock, listener: BookingsListener, model: PrefillModel | undefined) {
    this.#pool = pool;
    this.#ids = ids;
    this.#clock = clock;
    this.#listener = listener;
    this.#prefillModel = model;
  }

  get blockSize(): number {
    return this.#pool.kernel.blockSize;
  }

  get tracksOutputBlocks(): boolean {
    return this.#pool.config.routerTrackOutputBlocks;
  }

  nowMs(): number {
    return this.#clock.now();
  }

  /** The live ones, made into a list. */
  list(): PoolBooking[] {
    return this.#ids.of(this);
  }

  /** Those of one rank. */
  of({ slot }: PoolRank): PoolBooking[] {
    return this.list().filter((booking) => booking.slot === slot);
  }

  /** The handle of what the kernel has booked under an id and a generation. */
  booked(requestId: string, rank: PoolRank, id: number, generation: number, isl: number, osl: number): PoolBooking {
    const booking = new PoolBooking(this, requestId, rank.name, rank.slot, id, generation, isl, osl);
    this.#ids.set(booking);
    return booking;
  }

  /** Books without a selection. Throws `duplicate_request`, `invalid_request` or `memory_budget`. */
  reserve(
    requestId: string,
    rank: PoolRank,
    sequenceHashes: BigUint64Array | readonly U64Input[],
    islTokens: number,
    effectivePrefillTokens: number,
  ): PoolBooking {
    this.#ids.claim(requestId);
    const { kernel } = this.#pool;
    const n = sequenceHashes.length;
    const { names } = kernel.roomForEvent(n);
    if (sequenceHashes instanceof BigUint64Array) names.set(sequenceHashes);
    else for (let i = 0; i < n; i++) names[i] = parseU64(sequenceHashes[i], `sequenceHashes[${i}]`);
    const { routerTrackActiveBlocks, routerAssumeKvReuse, routerTrackPrefillTokens } = this.#pool.config;
    const charged = routerTrackActiveBlocks ? n : 0;
    const shared = routerAssumeKvReuse ? charged : 0;
    const prefillTokens = routerTrackPrefillTokens ? effectivePrefillTokens : 0;
    const id = kernel.exports.reserve(rank.slot, shared, charged - shared, prefillTokens);
    if (id === 0) throw budgetError("another booking");
    const booking = this.booked(requestId, rank, id, kernel.exports.bookingGeneration(id), islTokens, 0);
    this.modelPrefill(booking, prefillTokens);
    const { predictions } = this.#pool;
    if (predictions) {
      kernel.exports.predict(rank.slot, n);
      predictions.follow(booking, n);
    }
    return booking;
  }

  /** Tells the kernel how long the prefill of a booking takes, if anybody knows. */
  modelPrefill({ id, generation, worker, inputTokens }: PoolBooking, newTokens: number): void {
    if (!this.#prefillModel || newTokens <= 0) return;
    const cachedTokens = Math.max(0, inputTokens - newTokens);
    const ms = this.#prefillModel.durationMs({ worker, role: this.#pool.role, newTokens, cachedTokens });
    if (ms !== undefined) this.#pool.kernel.exports.bookingPrefillDuration(id, generation, ms);
  }

  // While components of the policy run, a verb waits for the end of the decision.

  bookingPrefillComplete(booking: PoolBooking): void {
    const { kernel } = this.#pool;
    if (kernel.isHeld) {
      kernel.postpone(() => this.bookingPrefillComplete(booking));
      return;
    }
    kernel.exports.bookingPrefillComplete(booking.id, booking.generation);
    this.#listener.roomAt(booking.slot);
  }

  bookingOutputBlocks(booking: PoolBooking, more: number, fraction: number | undefined): void {
    if (fraction !== undefined && !(typeof fraction === "number" && fraction >= 0 && fraction <= 1)) {
      throw new WarmrouteError("invalid_request", `decayFraction must be from 0 to 1, not ${describe(fraction)}`, {
        path: "decayFraction",
      });
    }
    const { kernel } = this.#pool;
    if (kernel.isHeld) kernel.postpone(() => this.bookingOutputBlocks(booking, more, fraction));
    else kernel.exports.bookingOutputBlocks(booking.id, booking.generation, more, fraction ?? Number.NaN);
  }

  bookingFree(booking: PoolBooking): void {
    const { kernel } = this.#pool;
    this.#forget(booking);
    if (kernel.isHeld) kernel.postpone(() => kernel.exports.bookingFree(booking.id, booking.generation));
    else if (!kernel.failed) kernel.exports.bookingFree(booking.id, booking.generation);
    this.#listener.roomAt(booking.slot);
  }

  #forget(booking: PoolBooking): void {
    booking.live = false;
    this.#ids.delete(booking);
  }

  // ---- a kernel with restored state

  /** The ranks of the bookings have other slots now. */
  moved(slots: ReadonlyMap<number, number>): void {
    for (const booking of this.list()) booking.slot = slots.get(booking.slot)!;
  }

  /** The live bookings are those of a snapshot from now on, its slots mapped; a handle of the same request goes on. */
  adopt(states: readonly BookingState[], slots: ReadonlyMap<number, number>): void {
    const before = new Map(this.list().map((booking) => [booking.requestId, booking]));
    for (const booking of before.values()) this.#forget(booking);
    for (const state of states) {
      const slot = slots.get(state.slot);
      if (slot === undefined) continue;
      const rank = this.#pool.ranks.at(slot);
      const { requestId, id, generation, inputTokens, expectedOutputTokens } = state;
      const old = before.get(requestId);
      if (old) this.#ids.set(old);
      const booking = old ?? this.booked(requestId, rank, id, generation, inputTokens, expectedOutputTokens);
      booking.resume({ ...state, slot }, rank.name);
    }
    const gone = new WarmrouteError("unknown_worker", "the worker of this request has another state now");
    for (const booking of before.values()) if (!booking.live) booking.lost(gone);
  }
}
