/// <reference lib="esnext.disposable" preserve="true" />
import { parseU32 } from "../../core/ids.js";
import type { WorkerRank } from "../../core/types.js";

/** What a booking needs of the pool that made it. */
export interface BookingOwner {
  readonly blockSize: number;
  readonly tracksOutputBlocks: boolean;
  /** The router's clock. */
  nowMs(): number;
  bookingPrefillComplete(booking: PoolBooking): void;
  bookingOutputBlocks(booking: PoolBooking, more: number, decayFraction: number | undefined): void;
  bookingFree(booking: PoolBooking): void;
}

/** Follows the request of a booking. It may hear the same thing twice, and never throws. */
export interface BookingObserver {
  /** The booking was made on this rank. */
  selected(worker: WorkerRank): void;
  sent(worker: WorkerRank): void;
  responding(worker: WorkerRank): void;
  /** `n` more tokens were generated. */
  generated(n: number): void;
  /** Prompt and output have at least this many tokens together. */
  contextFloor(tokens: number): void;
  /** The attempt is over, but the request goes on with another booking. */
  retry(): void;
  completed(): void;
  aborted(error?: unknown): void;
}

/** Token counts as an engine reports them with a response. */
export interface Usage {
  prompt_tokens?: number;
  completion_tokens?: number;
  total_tokens?: number;
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
  /** When the request last showed that it is alive (see Leases). */
  progressAtMs: number;
  readonly owner: BookingOwner;
  #observer: BookingObserver | undefined;
  /** Prefill is complete. */
  #hasBegun = false;

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
    this.progressAtMs = owner.nowMs();
    this.#observer = undefined;
  }

  /** Tells one more observer of everything from now on, this rank first. */
  observe(observer: BookingObserver): void {
    if (!this.live) return;
    this.#observer = this.#observer ? new ObserverPair(this.#observer, observer) : observer;
    observer.selected(this.worker);
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
    this.#hasBegun = false;
    this.renew();
  }

  /** The request shows that it is alive. */
  renew(): void {
    this.progressAtMs = this.owner.nowMs();
  }

  /** The request was sent to the worker. */
  sent(): void {
    this.renew();
    this.#observer?.sent(this.worker);
  }

  /** The first token arrived, so prefill is complete. */
  firstToken(): void {
    this.prefillComplete();
  }

  /**
   * `n` more tokens were generated, so prefill is complete; charges the blocks they complete where output blocks are
   * tracked.
   * Throws `invalid_request` unless `n` is a whole number from 0 to 4294967295.
   */
  tokens(n: number): void {
    if (!this.live) return;
    parseU32(n, "tokens");
    if (n > 0 && !this.#hasBegun) this.prefillComplete();
    this.renew();
    this.#observer?.generated(n);
    if (!this.owner.tracksOutputBlocks) return;
    const size = this.owner.blockSize;
    const before = Math.floor((this.inputTokens + this.generated) / size);
    this.generated += n;
    const after = Math.floor((this.inputTokens + this.generated) / size);
    const expected = this.expectedOutputTokens;
    const fraction = expected > 0 ? Math.max(0, 1 - this.generated / expected) : undefined;
    if (after > before) this.owner.bookingOutputBlocks(this, after - before, fraction);
  }

  /** The response ended well. `usage` is what the engine reported; a part of it that is no count is ignored. */
  complete(usage?: Usage | null): void {
    if (usage) this.#observer?.contextFloor(totalTokens(usage));
    this.free();
  }

  /** The request failed, or its caller gave up (then there is no error). */
  abort(error?: unknown): void {
    if (!this.live) return;
    this.#unobserved()?.aborted(error);
    this.owner.bookingFree(this);
  }

  /** The pool has let go of the booking, and its request is over. */
  lost(error: unknown): void {
    this.#unobserved()?.aborted(error);
  }

  /** Ends this attempt of the request, whose observer waits for the next one. */
  retry(): void {
    if (!this.live) return;
    this.#unobserved()?.retry();
    this.owner.bookingFree(this);
  }

  /** Removes the prefill charge; a second call changes nothing. */
  prefillComplete(): void {
    if (!this.live) return;
    this.#hasBegun = true;
    this.renew();
    this.#observer?.sent(this.worker);
    this.#observer?.responding(this.worker);
    this.owner.bookingPrefillComplete(this);
  }

  /**
   * Charges one output block. `decayFraction` in 0…1 becomes the weight of every block that only this
   * request holds; throws `invalid_request` outside that range.
   */
  outputBlock(decayFraction?: number): void {
    if (!this.live) return;
    this.owner.bookingOutputBlocks(this, 1, decayFraction);
    this.renew();
  }

  /** Ends the booking and all its charges, as of a request that is complete. Never throws. */
  free(): void {
    if (!this.live) return;
    this.#unobserved()?.completed();
    this.owner.bookingFree(this);
  }

  /** A booking that nobody ended: its request was given up. */
  [Symbol.dispose](): void {
    this.abort();
  }

  /** The observer, which hears one more thing and then nothing. */
  #unobserved(): BookingObserver | undefined {
    const observer = this.#observer;
    this.#observer = undefined;
    return observer;
  }
}

/** Two observers as one. */
class ObserverPair implements BookingObserver {
  readonly #a: BookingObserver;
  readonly #b: BookingObserver;

  constructor(a: BookingObserver, b: BookingObserver) {
    this.#a = a;
    this.#b = b;
  }

  selected(worker: WorkerRank): void {
    this.#a.selected(worker);
    this.#b.selected(worker);
  }
  sent(worker: WorkerRank): void {
    this.#a.sent(worker);
    this.#b.sent(worker);
  }
  responding(worker: WorkerRank): void {
    this.#a.responding(worker);
    this.#b.responding(worker);
  }
  generated(n: number): void {
    this.#a.generated(n);
    this.#b.generated(n);
  }
  contextFloor(tokens: number): void {
    this.#a.contextFloor(tokens);
    this.#b.contextFloor(tokens);
  }
  retry(): void {
    this.#a.retry();
    this.#b.retry();
  }
  completed(): void {
    this.#a.completed();
    this.#b.completed();
  }
  aborted(error?: unknown): void {
    this.#a.aborted(error);
    this.#b.aborted(error);
  }
}

function totalTokens({ total_tokens, prompt_tokens, completion_tokens }: Usage): number {
  return count(total_tokens) || count(prompt_tokens) + count(completion_tokens);
}

const count = (value: unknown) => (Number.isSafeInteger(value) ? Math.max(0, value as number) : 0);
