import type { BookingObserver } from "../bookings/booking.js";

/** What ends predictions, and counts what they hold. */
export interface PredictionOwner {
  /** Its worker has the prompt, and `more` tokens follow what the prediction has. */
  grow(prediction: Prediction, more: number): void;
  /** Prompt and output have at least this many tokens together. */
  reach(prediction: Prediction, tokens: number): void;
  /** Its request is over: what it left may make room for others. */
  release(prediction: Prediction): void;
  /** Its request came to nothing: the rank holds what it held before. */
  undo(prediction: Prediction): void;
}

/** What one rank is believed to hold. */
export class BelievedCache {
  slot: number;
  /** Blocks that are shared between no prompts; the kernel counts the others. */
  ownBlocks = 0;
  /** Of requests that go on, and of those that are over: least recently used first. */
  readonly used = new Set<Prediction>();
  readonly released = new Set<Prediction>();

  constructor(slot: number) {
    this.slot = slot;
  }
}

/** What one request leaves on its rank; follows its booking. */
export class Prediction implements BookingObserver {
  readonly #owner: PredictionOwner;
  readonly cache: BelievedCache;
  /** 0 once it has ended. */
  id: number;
  readonly generation: number;
  blocks: number;
  /** How many of them the rank held when the prediction was made. */
  heldBefore = 0;
  ownBlocks = 0;
  ownTokens = 0;
  expiresAtMs = Number.POSITIVE_INFINITY;
  /** The worker answered, so it has the prompt. */
  answered = false;
  /** The request that it follows; undefined when that is over. */
  requestId: string | undefined;

  constructor(owner: PredictionOwner, cache: BelievedCache, id: number, generation: number, blocks: number) {
    this.#owner = owner;
    this.cache = cache;
    this.id = id;
    this.generation = generation;
    this.blocks = blocks;
  }

  responding(): void {
    this.generated(0);
  }

  generated(n: number): void {
    this.answered = true;
    this.#owner.grow(this, n);
  }

  contextFloor(tokens: number): void {
    this.#owner.reach(this, tokens);
  }

  completed(): void {
    this.requestId = undefined;
    this.#owner.release(this);
  }

  aborted(): void {
    this.requestId = undefined;
    if (this.answered) this.#owner.release(this);
    else this.#owner.undo(this);
  }

  retry(): void {
    this.aborted();
  }

  selected(): void {}
  sent(): void {}
}
