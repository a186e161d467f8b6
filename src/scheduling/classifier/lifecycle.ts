import type { WorkerRank } from "../../core/types.js";
import type { ClassifyEvent } from "../../plugins/request-classifier/contract.js";
import type { BookingObserver } from "../bookings/booking.js";
import type { ClassifyOverrides } from "./overrides.js";

/** Who hears of a lifecycle. */
export interface LifecycleOwner {
  /** Whether the classifier takes events at all. */
  readonly listens: boolean;
  happened(event: ClassifyEvent): void;
  /** The lifecycle is over, and this is its last event. */
  ended(lifecycle: RequestLifecycle, event: ClassifyEvent): void;
}

/**
 * The life of one logical request, over all its attempts: registered → sent → responding → ended, each step only
 * from the one before, and exactly one terminal event (spec: plugins.md §5.5, §5.6). A retry goes back to
 * registered. Once ended, nothing changes any more.
 */
export class RequestLifecycle implements BookingObserver {
  readonly requestId: string;
  /** What the classifier answered; replayed for each attempt. */
  overrides: ClassifyOverrides | undefined;
  /** The plugin has had the terminal event. */
  told = false;
  readonly #owner: LifecycleOwner;
  #previous: RequestLifecycle | undefined;
  #phase: "registered" | "sent" | "responding" | "ended" = "registered";
  /** Frozen: plugins get it as it is. */
  #worker: WorkerRank | undefined;
  #contextTokens: number;
  #progress: Progress | undefined;

  /** `previous` had this id before, and its terminal event is on its way to the plugin. */
  constructor(owner: LifecycleOwner, requestId: string, inputTokens: number, previous: RequestLifecycle | undefined) {
    this.#owner = owner;
    this.requestId = requestId;
    this.#contextTokens = inputTokens;
    this.#previous = previous;
  }

  get live(): boolean {
    return this.#phase !== "ended";
  }

  /** The plugin knows that the request that had this id before is over. */
  get mayBeClassified(): boolean {
    if (this.#previous?.told) this.#previous = undefined;
    return this.#previous === undefined;
  }

  /** Prompt and generated tokens so far; it only rises. */
  get contextTokens(): number {
    return this.#contextTokens;
  }

  /** The same for the plugin, which may keep it. */
  get progress(): Progress {
    this.#progress ??= new Progress(this);
    return this.#progress;
  }

  contextFloor(tokens: number): void {
    if (this.live && tokens > this.#contextTokens) this.#contextTokens = tokens;
  }

  generated(n: number): void {
    if (this.live) this.#contextTokens += n;
  }

  selected(worker: WorkerRank): void {
    if (this.live) this.#worker = frozen(worker);
  }

  sent(worker: WorkerRank): void {
    if (this.#phase === "registered") this.#step("sent", worker);
  }

  responding(worker: WorkerRank): void {
    if (this.#phase === "sent") this.#step("responding", worker);
  }

  #step(type: "sent" | "responding", worker: WorkerRank): void {
    this.#phase = type;
    this.#worker = frozen(worker);
    if (this.#owner.listens) this.#owner.happened({ type, requestId: this.requestId, worker: this.#worker });
  }

  /** The attempt is over, but not the request; the last worker is kept. */
  retry(): void {
    if (this.live) this.#phase = "registered";
  }

  /** The request is answered. Without a worker it cannot be, so it counts as aborted. */
  completed(): void {
    if (!this.live) return;
    const { requestId } = this;
    const worker = this.#worker;
    this.#end(
      worker
        ? { type: "completed", requestId, worker, contextTokens: this.#contextTokens }
        : { type: "aborted", requestId },
    );
  }

  /** The request failed, was given up (then there is no error) or refused. */
  aborted(error?: unknown): void {
    if (!this.live) return;
    this.#end({
      type: "aborted",
      requestId: this.requestId,
      ...(this.#worker && { worker: this.#worker }),
      ...(error !== undefined && { error }),
    });
  }

  #end(event: ClassifyEvent): void {
    this.#phase = "ended";
    this.#owner.ended(this, event);
  }
}

/** A rank that stays as it is; the pool's own are frozen already. */
const frozen = (worker: WorkerRank) => (Object.isFrozen(worker) ? worker : Object.freeze({ ...worker }));

/** A plugin's sight of a request's tokens. */
class Progress {
  readonly #lifecycle: RequestLifecycle;

  constructor(lifecycle: RequestLifecycle) {
    this.#lifecycle = lifecycle;
  }

  get contextTokens(): number {
    return this.#lifecycle.contextTokens;
  }
}
