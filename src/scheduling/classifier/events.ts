import { armTimer, type Clock } from "../../core/clock.js";
import type { Logger } from "../../core/log.js";
import type { ClassifyEvent, RequestClassifier } from "../../plugins/request-classifier/contract.js";
import type { RequestLifecycle } from "./lifecycle.js";

export interface EventDeliveryOptions {
  classifier: RequestClassifier;
  log: Logger;
  clock: Clock;
  /** Milliseconds after which a callback that does not end is left alone. */
  timeoutMs: number | undefined;
  /** A callback is over, and with a terminal event the lifecycle that it ends. */
  released(ended: RequestLifecycle | undefined): void;
}

/**
 * Gives a classifier its events: in order, one at a time, none lost while it is open (spec: plugins.md §5.6).
 * `busy` while a callback runs, or its promise is pending.
 */
export class EventDelivery {
  busy = false;
  delivered = 0;
  /** Callbacks that threw. */
  failed = 0;
  /** Callbacks that did not end in time, or before the close. */
  abandoned = 0;
  /** Events that the close left undelivered. */
  dropped = 0;
  readonly listens: boolean;
  readonly #options: EventDeliveryOptions;
  #queue: { event: ClassifyEvent; ends: RequestLifecycle | undefined }[] = [];
  #next = 0;
  #scheduled = false;
  /** Goes on without the callback whose promise is pending. */
  #abandon: (() => void) | undefined;
  #pendingSince = 0;

  constructor(options: EventDeliveryOptions) {
    this.#options = options;
    this.listens = options.classifier.onEvent !== undefined;
  }

  get queued(): number {
    return this.#queue.length - this.#next;
  }

  /** Queues an event; `ends` is the lifecycle that it ends. It is delivered shortly after, never at once. */
  push(event: ClassifyEvent, ends?: RequestLifecycle): void {
    this.#queue.push({ event, ends });
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.busy || this.queued === 0) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.deliver();
    });
  }

  /** Delivers what is queued, until a callback is pending. */
  deliver(): void {
    while (!this.busy && this.queued > 0) {
      const { event, ends } = this.#take();
      this.busy = true;
      let answer: unknown;
      let threw = false;
      try {
        answer = this.#options.classifier.onEvent!(Object.freeze(event));
      } catch (error) {
        threw = true;
        this.#fail(error);
      }
      if (typeof answer === "object" && answer !== null) {
        this.#wait(answer, ends);
        return;
      }
      if (!threw) this.delivered++;
      this.#end(ends);
    }
  }

  #take() {
    const taken = this.#queue[this.#next++]!;
    if (this.#next * 2 >= this.#queue.length) {
      this.#queue = this.#queue.slice(this.#next);
      this.#next = 0;
    }
    return taken;
  }

  #fail(error: unknown): void {
    this.failed++;
    this.#options.log.error("the request classifier threw on an event", { cause: error });
  }

  #end(ends: RequestLifecycle | undefined): void {
    this.busy = false;
    this.#options.released(ends);
  }

  #wait(answer: unknown, ends: RequestLifecycle | undefined): void {
    const { clock, timeoutMs } = this.#options;
    let over = false;
    const stopTimer = timeoutMs === undefined ? undefined : armTimer(clock, () => this.#expire(), timeoutMs);
    const end = (count: () => void) => {
      if (over) return;
      over = true;
      stopTimer?.();
      this.#abandon = undefined;
      count();
      this.#end(ends);
      // In a microtask of its own: who waited for the end of the callback goes first.
      this.#schedule();
    };
    this.#abandon = () => end(() => this.abandoned++);
    this.#pendingSince = clock.now();
    new Promise((resolve) => resolve(answer)).then(
      () => end(() => this.delivered++),
      (error) => end(() => this.#fail(error)),
    );
  }

  #expire(): void {
    const { log, timeoutMs } = this.#options;
    log.warn("the request classifier did not end with an event in time", { timeoutMs });
    this.#abandon?.();
  }

  /**
   * Leaves a callback alone whose time is over. Its timer does so too, except on workerd: there it dies with the
   * request that caused the event, so those that wait look for themselves.
   */
  checkTime(): void {
    const { clock, timeoutMs } = this.#options;
    if (this.#abandon && timeoutMs !== undefined && clock.now() - this.#pendingSince >= timeoutMs) this.#expire();
  }

  /** Drops what is queued, and lets go of a callback that is pending. Nothing may be pushed any more. */
  close(): void {
    this.dropped += this.queued;
    this.#queue = [];
    this.#next = 0;
    this.#abandon?.();
  }
}
