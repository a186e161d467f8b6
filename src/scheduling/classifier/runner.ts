import type { Clock } from "../../core/clock.js";
import { WarmrouteError } from "../../core/errors.js";
import { type Logger, quietLogger } from "../../core/log.js";
import type { ClassifyEvent, RequestClassifier } from "../../plugins/request-classifier/contract.js";
import type { PolicyClasses } from "../queue/policy-class.js";
import { EventDelivery } from "./events.js";
import { lifecycleEnded, pastDue, refusedAnswer, shuttingDown, tooManyPending } from "./faults.js";
import { guardListeners } from "./guarded-signal.js";
import { type LifecycleOwner, RequestLifecycle } from "./lifecycle.js";
import { type ClassifyOverrides, checkOverrides, noOverrides } from "./overrides.js";
import { PendingClassification } from "./pending.js";
import { ClassifierRequest, type ClassifyInput } from "./request.js";

export interface ClassifierRunnerOptions {
  classifier: RequestClassifier;
  /** What a class that the plugin sets must be a name of. */
  classes: PolicyClasses;
  clock: Clock;
  log: Logger;
  /** Milliseconds for a classification, waiting included, and for one event; no limit unless given. */
  classifyTimeoutMs?: number | undefined;
  /** Classifications that may wait at once; no limit unless given. */
  maxPending?: number | undefined;
  /** Whether the plugin may set strict priority and priority jump. */
  allowPriority?: boolean | undefined;
}

export interface ClassifierStats {
  /** Requests that began and did not end. */
  live: number;
  /** Classifications that wait for their turn or for the plugin. */
  pending: number;
  /** Times that the plugin was asked. */
  classified: number;
  /** Throws and rejections of the plugin, and answers that were refused. */
  failed: number;
  timedOut: number;
  /** Classifications that maxPending turned away. */
  turnedAway: number;
  events: { queued: number; delivered: number; failed: number; abandoned: number; dropped: number };
  /** Calls that did not classify, by their name. */
  bypassed: Record<string, number>;
}

/** One call of the plugin. */
interface PluginCall {
  request: ClassifierRequest;
  /** Of the signal that the plugin got, if it takes one. */
  controller: AbortController | undefined;
  answer: unknown;
}

/**
 * Runs the request classifier of one router (spec: plugins.md §5). A request begins, is classified once, and is
 * followed to its end; its lifecycle is what the rest of the router reports to.
 *
 * The plugin is entered by one caller at a time: an event whose callback is pending holds up the synchronous
 * part of new classifications, but a pending classification holds up nothing.
 */
export class ClassifierRunner implements LifecycleOwner {
  readonly #options: ClassifierRunnerOptions;
  readonly #log: Logger;
  readonly #classifies: boolean;
  readonly #takesSignal: boolean;
  readonly #events: EventDelivery;
  readonly #live = new Map<string, RequestLifecycle>();
  /** The last lifecycle of each id, while its terminal event is on its way. */
  readonly #ending = new Map<string, RequestLifecycle>();
  readonly #pending = new Map<RequestLifecycle, PendingClassification>();
  /** Those that wait until the plugin is free, in the order in which they came. */
  #line = new Set<PendingClassification>();
  readonly #bypassed = new Map<string, number>();
  #calling = false;
  #closed = false;
  readonly #counts = { classified: 0, failed: 0, timedOut: 0, turnedAway: 0 };

  constructor(options: ClassifierRunnerOptions) {
    this.#options = options;
    this.#log = quietLogger(options.log);
    const { classifier, clock, classifyTimeoutMs } = options;
    this.#classifies = classifier.classify !== undefined;
    // A signal costs more than a whole selection does, and most plugins answer at once and declare none.
    this.#takesSignal = classifier.classify?.length !== 1;
    this.#events = new EventDelivery({
      classifier,
      log: this.#log,
      clock,
      timeoutMs: classifyTimeoutMs,
      released: (ended) => {
        if (ended) this.#told(ended);
        this.#wakeLine();
      },
    });
  }

  /** Begins a request of `inputTokens` prompt tokens. Throws `duplicate_request` while its id is live. */
  begin(requestId: string, inputTokens: number): RequestLifecycle {
    if (this.#closed) throw shuttingDown();
    if (this.#live.has(requestId)) {
      throw new WarmrouteError("duplicate_request", "a request with this id is live");
    }
    const lifecycle = new RequestLifecycle(this, requestId, inputTokens, this.#ending.get(requestId));
    this.#live.set(requestId, lifecycle);
    return lifecycle;
  }

  /**
   * What the classifier changes of a request: asked once in a lifecycle, replayed for its later attempts. A value
   * at once when the plugin answers at once and nothing waits; else a promise.
   *
   * Throws or rejects with `request_classifier_failed`, `invalid_classification_metadata`, `lifecycle_ended`,
   * `deadline_exceeded`, `classify_timeout`, `classify_pending_limit`, `shutting_down`, or the signal's reason;
   * the lifecycle has ended then, with that error unless the caller gave up.
   */
  classify(
    lifecycle: RequestLifecycle,
    input: ClassifyInput,
    signal?: AbortSignal,
  ): ClassifyOverrides | Promise<ClassifyOverrides> {
    try {
      if (this.#closed) throw shuttingDown();
      if (!lifecycle.live) throw lifecycleEnded();
      if (signal?.aborted) {
        lifecycle.aborted();
        throw signal.reason;
      }
      lifecycle.contextFloor(input.inputTokens);
      if (lifecycle.overrides) return this.#inTime(lifecycle.overrides);
      if (!this.#classifies) return noOverrides;
      if (this.#pending.size >= (this.#options.maxPending ?? Number.POSITIVE_INFINITY)) {
        throw tooManyPending();
      }
      if (!this.#mayCall(lifecycle)) {
        // The end of the id's previous request may just not have been told yet.
        this.#deliverNow();
        if (!this.#mayCall(lifecycle)) return this.#wait(lifecycle, input, signal);
      }
      const call = this.#call(lifecycle, input);
      if (mayBePromise(call)) return this.#wait(lifecycle, input, signal, call);
      return this.#accept(lifecycle, call.request, call.answer);
    } catch (error) {
      throw this.#refuse(lifecycle, error);
    }
  }

  /** Nobody is inside the plugin, and the end of the id's previous request has been told. */
  #mayCall(lifecycle: RequestLifecycle): boolean {
    return !this.#calling && !this.#events.busy && lifecycle.mayBeClassified;
  }

  #call(lifecycle: RequestLifecycle, input: ClassifyInput): PluginCall {
    const request = new ClassifierRequest(lifecycle, input, this.#options.allowPriority === true);
    const controller = this.#takesSignal ? this.#controller() : undefined;
    this.#counts.classified++;
    this.#calling = true;
    try {
      // Absent only where the plugin declares no parameter for it.
      const signal = controller?.signal as AbortSignal;
      return { request, controller, answer: this.#options.classifier.classify!(request, signal) };
    } catch (cause) {
      request.take();
      throw request.blame(cause);
    } finally {
      this.#calling = false;
      this.#wakeLine();
    }
  }

  #controller(): AbortController {
    const controller = new AbortController();
    guardListeners(controller.signal, (cause) => {
      this.#log.error("the request classifier threw when its request was given up", { cause });
    });
    return controller;
  }

  /** Waits for the turn of the request, unless it was called already, then for the plugin's answer. */
  async #wait(
    lifecycle: RequestLifecycle,
    input: ClassifyInput,
    signal: AbortSignal | undefined,
    called?: PluginCall,
  ): Promise<ClassifyOverrides> {
    const { clock, classifyTimeoutMs } = this.#options;
    const pending = new PendingClassification(lifecycle, signal, clock, classifyTimeoutMs, (pending) => {
      this.#events.checkTime();
      // On workerd whoever should have waked it may be gone.
      if (this.#mayCall(lifecycle)) pending.wake();
    });
    this.#pending.set(lifecycle, pending);
    // The plugin may have ended it while it was called.
    if (!lifecycle.live) pending.stop(lifecycleEnded());
    let call = called;
    try {
      try {
        call ??= await this.#turn(lifecycle, input, pending);
        const { request } = call;
        const answer = await pending.answer(call.answer, call.controller, (cause) => request.blame(cause));
        pending.assertGoing();
        return this.#accept(lifecycle, call.request, answer);
      } finally {
        call?.request.take();
        pending.end();
        this.#pending.delete(lifecycle);
      }
    } catch (error) {
      throw this.#refuse(lifecycle, error);
    }
  }

  /** Calls the plugin as soon as it may. */
  async #turn(lifecycle: RequestLifecycle, input: ClassifyInput, pending: PendingClassification): Promise<PluginCall> {
    try {
      do {
        if (lifecycle.mayBeClassified) this.#line.add(pending);
        await pending.turn();
        pending.assertGoing();
      } while (!this.#mayCall(lifecycle));
    } finally {
      this.#line.delete(pending);
    }
    return this.#call(lifecycle, input);
  }

  /** Judges an answer, in the order of spec plugins.md §5.4. */
  #accept(lifecycle: RequestLifecycle, request: ClassifierRequest, answer: unknown): ClassifyOverrides {
    const overrides = request.take();
    if (answer !== request) throw refusedAnswer("the answer is not the request that was asked about");
    if (!lifecycle.live) throw lifecycleEnded();
    checkOverrides(overrides, this.#options.classes);
    lifecycle.overrides = overrides;
    return this.#inTime(overrides);
  }

  #inTime(overrides: ClassifyOverrides): ClassifyOverrides {
    const { dueAtMs } = overrides;
    if (dueAtMs !== undefined && dueAtMs <= this.#options.clock.now()) throw pastDue();
    return overrides;
  }

  /** Ends a request that cannot be classified. */
  #refuse(lifecycle: RequestLifecycle, error: unknown): unknown {
    if (error instanceof WarmrouteError) {
      if (error.code === "classify_timeout") this.#counts.timedOut++;
      if (error.code === "classify_pending_limit") this.#counts.turnedAway++;
      if (error.code === "request_classifier_failed" || error.code === "invalid_classification_metadata") {
        this.#counts.failed++;
        this.#log.error(error.message, { code: error.code, cause: error.cause });
      }
    }
    lifecycle.aborted(error);
    return error;
  }

  /**
   * The plugin is free: all in the line go, one after the other. Each is waked once for each time that it waits, so
   * that the work is linear; who still finds the plugin busy waits anew.
   */
  #wakeLine(): void {
    if (this.#line.size === 0) return;
    const line = this.#line;
    this.#line = new Set();
    for (const pending of line) pending.wake();
  }

  // ---- lifecycles

  get listens(): boolean {
    return this.#events.listens;
  }

  happened(event: ClassifyEvent): void {
    this.#events.push(event);
  }

  ended(lifecycle: RequestLifecycle, event: ClassifyEvent): void {
    this.#live.delete(lifecycle.requestId);
    this.#pending.get(lifecycle)?.stop(lifecycleEnded());
    if (!this.listens) return;
    this.#ending.set(lifecycle.requestId, lifecycle);
    this.#events.push(event, lifecycle);
  }

  /** Delivers the events that the plugin can take at once. */
  #deliverNow(): void {
    if (!this.#calling) this.#events.deliver();
  }

  /** The plugin has had the terminal event. */
  #told(lifecycle: RequestLifecycle): void {
    const { requestId } = lifecycle;
    lifecycle.told = true;
    if (this.#ending.get(requestId) === lifecycle) this.#ending.delete(requestId);
    // The request that has the id now may be what waited for this.
    const next = this.#live.get(requestId);
    const pending = next?.mayBeClassified ? this.#pending.get(next) : undefined;
    if (pending) this.#line.add(pending);
  }

  // ---- the router's view

  /** Counts a call that selects without classifying. */
  bypass(call: string): void {
    this.#bypassed.set(call, (this.#bypassed.get(call) ?? 0) + 1);
  }

  stats(): ClassifierStats {
    const { queued, delivered, failed, abandoned, dropped } = this.#events;
    return {
      live: this.#live.size,
      pending: this.#pending.size,
      ...this.#counts,
      events: { queued, delivered, failed, abandoned, dropped },
      bypassed: Object.fromEntries(this.#bypassed),
    };
  }

  /**
   * Aborts all that is live with `shutting_down`, and closes the plugin. Events that it can take at once it still
   * gets; those behind a callback that is pending are dropped, and counted. A second call does nothing.
   */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const pending of this.#pending.values()) pending.stop(shuttingDown());
    for (const lifecycle of this.#live.values()) lifecycle.aborted(shuttingDown());
    this.#deliverNow();
    this.#events.close();
    try {
      await this.#options.classifier.close?.();
    } catch (cause) {
      this.#log.error("the request classifier threw on its close", { cause });
    }
  }
}

/** Something that has to be waited for, to learn what it is. */
function mayBePromise({ request, answer }: PluginCall): boolean {
  return answer !== request && ((typeof answer === "object" && answer !== null) || typeof answer === "function");
}
