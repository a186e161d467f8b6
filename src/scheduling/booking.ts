import { parseU32 } from "../core/ids.js";
import type { WorkerRank } from "../core/types.js";

/** What a booking needs of the pool that made it. */
export interface BookingOwner {
  readonly blockSize: number;
  readonly tracksOutputBlocks: boolean;
  bookingPrefillComplete(booking: PoolBooking): void;
  bookingOutputBlocks(booking: PoolBooking, more: number, decayFraction: number | undefined): void;
  bookingFree(booking: PoolBooking): void;
}

/** What a booking is made of; it goes into snapshots. */
export interface BookingState {
  readonly requestId: string;
  /** The kernel's name of this booking: a reusable id, and the generation that fences it. */
  id: number;
  generation: number;
  slot: number;
  /** Prompt tokens, tokens generated so far, and how many are expected (0 = unknown). */
  inputTokens: number;
  generated: number;
  expectedOutputTokens: number;
}

/**
 * The load charged to a rank for one request, from selection until free (spec: scheduling.md §1.3–1.5).
 * A handle: fenced by the kernel's generation, so a late verb never touches another booking. Verbs of an
 * ended booking do nothing.
 */
export class PoolBooking implements Disposable, BookingState {
  readonly requestId: string;
  worker: WorkerRank;
  slot: number;
  id: number;
  generation: number;
  inputTokens: number;
  generated: number;
  expectedOutputTokens: number;
  live = true;
  readonly owner: BookingOwner;

  /** One object on the request path: hence no bag of arguments. */
  constructor(
    owner: BookingOwner,
    requestId: string,
    worker: WorkerRank,
    slot: number,
    id: number,
    generation: number,
    inputTokens: number,
    expectedOutputTokens: number,
  ) {
    this.owner = owner;
    this.requestId = requestId;
    this.worker = worker;
    this.slot = slot;
    this.id = id;
    this.generation = generation;
    this.inputTokens = inputTokens;
    this.generated = 0;
    this.expectedOutputTokens = expectedOutputTokens;
  }

  /** Goes on as a restored booking of the same request. */
  resume(state: BookingState, worker: WorkerRank): void {
    this.worker = worker;
    this.slot = state.slot;
    this.id = state.id;
    this.generation = state.generation;
    this.inputTokens = state.inputTokens;
    this.generated = state.generated;
    this.expectedOutputTokens = state.expectedOutputTokens;
    this.live = true;
  }

  /** The request was sent to the worker. */
  sent(): void {}

  /** The first token arrived, so prefill is complete. */
  firstToken(): void {
    this.prefillComplete();
  }

  /**
   * `n` more tokens were generated; charges the blocks they complete where output blocks are tracked.
   * Throws `invalid_request` unless `n` is a whole number from 0 to 4294967295.
   */
  tokens(n: number): void {
    parseU32(n, "tokens");
    if (!this.live || !this.owner.tracksOutputBlocks) return;
    const size = this.owner.blockSize;
    const before = Math.floor((this.inputTokens + this.generated) / size);
    this.generated += n;
    const after = Math.floor((this.inputTokens + this.generated) / size);
    const expected = this.expectedOutputTokens;
    const fraction = expected > 0 ? Math.max(0, 1 - this.generated / expected) : undefined;
    if (after > before) this.owner.bookingOutputBlocks(this, after - before, fraction);
  }

  complete(): void {
    this.free();
  }

  abort(_error?: unknown): void {
    this.free();
  }

  /** Removes the prefill charge; a second call changes nothing. */
  prefillComplete(): void {
    if (this.live) this.owner.bookingPrefillComplete(this);
  }

  /**
   * Charges one output block. `decayFraction` in 0…1 becomes the weight of every block that only this
   * request holds; throws `invalid_request` outside that range.
   */
  outputBlock(decayFraction?: number): void {
    if (this.live) this.owner.bookingOutputBlocks(this, 1, decayFraction);
  }

  /** Ends the booking and all its charges. Never throws. */
  free(): void {
    if (this.live) this.owner.bookingFree(this);
  }

  [Symbol.dispose](): void {
    this.free();
  }
}
