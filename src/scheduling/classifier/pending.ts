import { armTimer, type Clock } from "../../core/clock.js";
import { timedOut } from "./faults.js";
import type { RequestLifecycle } from "./lifecycle.js";

/** Long beside a turn, short beside a caller's patience. */
const HEARTBEAT_MS = 100;

/**
 * A classification that waits: for its turn, then for the plugin. It is stopped when the caller gives up, its
 * time is over, or somebody says so; a stop ends the wait at once.
 *
 * While it waits it keeps a timer of its own. On workerd a request is killed when all it waits for is a promise
 * that another request resolves.
 */
export class PendingClassification {
  readonly #lifecycle: RequestLifecycle;
  readonly #signal: AbortSignal | undefined;
  readonly #clock: Clock;
  readonly #look: (pending: PendingClassification) => void;
  readonly #stopTimeout: (() => void) | undefined;
  #stopHeartbeat: () => void;
  readonly #onAbort = () => {
    this.stop(this.#signal!.reason);
    this.#lifecycle.aborted();
  };
  /** Of the signal that the plugin has, once it was called. */
  #controller: AbortController | undefined;
  #stopped: { readonly reason: unknown } | undefined;
  #over = false;
  #wake = () => {};
  #reject: (reason: unknown) => void = () => {};

  readonly #beat = () => {
    this.#stopHeartbeat = armTimer(this.#clock, this.#beat, HEARTBEAT_MS);
    this.#look(this);
  };

  /** `look` is called again and again while it waits. */
  constructor(
    lifecycle: RequestLifecycle,
    signal: AbortSignal | undefined,
    clock: Clock,
    timeoutMs: number | undefined,
    look: (pending: PendingClassification) => void,
  ) {
    this.#lifecycle = lifecycle;
    this.#signal = signal;
    this.#clock = clock;
    this.#look = look;
    this.#stopHeartbeat = armTimer(clock, this.#beat, HEARTBEAT_MS);
    if (timeoutMs !== undefined) this.#stopTimeout = armTimer(clock, () => this.stop(timedOut()), timeoutMs);
    if (signal?.aborted) this.#onAbort();
    else signal?.addEventListener("abort", this.#onAbort);
  }

  // Both waits return a plain promise, so that whoever awaits it goes on a microtask after it is settled. A stop may
  // come even then: call `assertGoing` first.

  /** Waits until `wake` is called. */
  turn(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#wake = resolve;
      this.#rejectWith(reject);
    });
  }

  wake(): void {
    this.#wake();
  }

  /**
   * Waits for what a plugin answered, whose signal, if it has one, is the controller's. Rejects with what `failed`
   * makes of the plugin's reason; what comes after a stop is ignored.
   */
  answer(
    answer: unknown,
    controller: AbortController | undefined,
    failed: (cause: unknown) => unknown,
  ): Promise<unknown> {
    this.#controller = controller;
    if (this.#stopped) controller?.abort(this.#stopped.reason);
    return new Promise((resolve, reject) => {
      // Not Promise.resolve(): that reads `constructor` of a promise, which may throw.
      new Promise((settle) => settle(answer)).then(resolve, (cause) => reject(failed(cause)));
      this.#rejectWith(reject);
    });
  }

  #rejectWith(reject: (reason: unknown) => void): void {
    this.#reject = reject;
    if (this.#stopped) reject(this.#stopped.reason);
  }

  /** Throws the reason when it was stopped, also in the moment after a wait. */
  assertGoing(): void {
    if (this.#stopped) throw this.#stopped.reason;
  }

  stop(reason: unknown): void {
    if (this.#over || this.#stopped) return;
    this.#stopped = { reason };
    this.#reject(reason);
    this.#controller?.abort(reason);
  }

  /** Nothing is waited for any more. */
  end(): void {
    this.#over = true;
    this.#stopHeartbeat();
    this.#stopTimeout?.();
    this.#signal?.removeEventListener("abort", this.#onAbort);
  }
}
