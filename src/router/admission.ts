// One request on its way to a worker: classifier → class → queue → selection, and again for its retries.
import type { Clock } from "../core/clock.js";
import { WarmrouteError } from "../core/errors.js";
import type { WorkerRank } from "../core/types.js";
import { checkTokens } from "../kernel/kernel.js";
import type { PolicyClass } from "../plugins/policy/contract.js";
import { pinOf } from "../scheduling/binding.js";
import type { HandleNet } from "../scheduling/bookings/booking-handle.js";
import type { RequestIds } from "../scheduling/bookings/request-ids.js";
import { bestCachedTokens } from "../scheduling/cached-tokens.js";
import type { RequestLifecycle } from "../scheduling/classifier/lifecycle.js";
import type { ClassifyOverrides } from "../scheduling/classifier/overrides.js";
import type { ClassifierRunner } from "../scheduling/classifier/runner.js";
import type { DecisionLog } from "../scheduling/decision-log.js";
import type { PoolRequest } from "../scheduling/pool.js";
import type { LaneKey, Parked } from "../scheduling/queue/contract.js";
import { mayQueue, type PolicyClasses } from "../scheduling/queue/policy-class.js";
import { noAttributes } from "../scheduling/selection-context.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
import { AffinityFollower } from "../scheduling/sessions/affinity-follower.js";
import type { Decision, Selection, SelectRequest } from "./contract.js";
import { decided, undecided } from "./decisions.js";
import type { LogicalRequest, Reselecting } from "./logical-request.js";
import { poolRequest, sessionOf } from "./pool-request.js";
import { RouterSelection } from "./selection.js";

export interface AdmissionOptions {
  readonly classes: PolicyClasses;
  readonly clock: Clock;
  readonly requestIds: RequestIds;
  readonly classifier: ClassifierRunner | undefined;
  readonly decisions: DecisionLog<Decision> | undefined;
  readonly handles: HandleNet;
  /** Whether the router has ended what is live, so that nothing may be booked any more. */
  isOver(): boolean;
}

/** Lets the requests of one router through to their pools. */
export class Admission implements Reselecting {
  /** Requests whose caller named a class that the profile does not have; they got the default one. */
  unknownClasses = 0;
  readonly #classes: PolicyClasses;
  readonly #clock: Clock;
  readonly #requestIds: RequestIds;
  readonly #classifier: ClassifierRunner | undefined;
  readonly #decisions: DecisionLog<Decision> | undefined;
  readonly #handles: HandleNet;
  readonly #isOver: () => boolean;

  constructor({ classes, clock, requestIds, classifier, decisions, handles, isOver }: AdmissionOptions) {
    this.#classes = classes;
    this.#clock = clock;
    this.#requestIds = requestIds;
    this.#classifier = classifier;
    this.#decisions = decisions;
    this.#handles = handles;
    this.#isOver = isOver;
  }

  /**
   * The first attempt of a request; its answer comes at once unless its classification takes time. Throws or rejects
   * with what reading, classifying or selecting refuses.
   */
  begin(
    core: SelectionCore,
    request: SelectRequest,
    attributes: ReadonlyMap<string, string> | undefined,
    signal: AbortSignal | undefined,
  ): Selection | Promise<Selection> {
    const ingressAtMs = this.#clock.now();
    const classifier = this.#classifierFor(core, request);
    if (!classifier)
      return this.#admit({ core, request, ingressAtMs, attributes, lifecycle: undefined }, undefined, signal);
    let lifecycle: RequestLifecycle;
    let pin: WorkerRank | undefined;
    try {
      const { requestId, tokens } = request;
      if (requestId === undefined) {
        throw new WarmrouteError("lifecycle_required", "this router classifies requests, so each needs a requestId", {
          path: "requestId",
        });
      }
      checkTokens(tokens);
      core.refresh();
      pin = pinOf(request);
      this.#requestIds.claim(requestId);
      lifecycle = classifier.begin(requestId, tokens.length);
    } catch (error) {
      throw this.#noted(request, error);
    }
    return this.#classify({ core, request, ingressAtMs, attributes, lifecycle }, classifier, lifecycle, pin, signal);
  }

  /** One more attempt, after the booking of the one before has ended. */
  again(logical: LogicalRequest, signal: AbortSignal | undefined): Selection | Promise<Selection> {
    const { lifecycle } = logical;
    if (!lifecycle) return this.#admit(logical, undefined, signal);
    return this.#classify(logical, this.#classifier!, lifecycle, pinOf(logical.request), signal);
  }

  /** The classifier of a request, if it has one. The prefill hop is not the request's owner, and encoders never are. */
  #classifierFor({ role }: SelectionCore, { lifecycle }: SelectRequest): ClassifierRunner | undefined {
    const classifier = this.#classifier;
    if (!classifier || role === "encode") return undefined;
    if (lifecycle !== false && role !== "prefill") return classifier;
    classifier.bypass("select");
    return undefined;
  }

  #classify(
    logical: LogicalRequest,
    classifier: ClassifierRunner,
    lifecycle: RequestLifecycle,
    pinnedWorker: WorkerRank | undefined,
    signal: AbortSignal | undefined,
  ): Selection | Promise<Selection> {
    const { core, request, ingressAtMs, attributes = noAttributes } = logical;
    const { tokens, policyClass } = request;
    const input = {
      policyClass,
      inputTokens: tokens.length,
      ingressAtMs,
      sessionContext: sessionOf(request),
      pinnedWorker,
      attributes,
      schedulingCost: () => Math.max(1, tokens.length - bestCachedTokens(core, request)),
    };
    let overrides: ClassifyOverrides | Promise<ClassifyOverrides>;
    try {
      overrides = classifier.classify(lifecycle, input, signal);
    } catch (error) {
      throw this.#noted(request, error);
    }
    if (!(overrides instanceof Promise)) return this.#admit(logical, overrides, signal);
    return overrides.then(
      (value) => this.#admit(logical, value, signal),
      (error) => {
        throw this.#noted(request, error);
      },
    );
  }

  /** Lets a request through to its pool, at once or when its turn comes. */
  #admit(
    logical: LogicalRequest,
    overrides: ClassifyOverrides | undefined,
    signal: AbortSignal | undefined,
  ): Selection | Promise<Selection> {
    const { core, request } = logical;
    try {
      assertWanted(logical, signal);
      const policyClass = this.#classOf(core, request, overrides?.policyClass);
      const asked = poolRequest(logical, overrides);
      if (mayQueue(policyClass)) {
        const lane = core.lanes.of(asked);
        if (core.queue.mustWait(policyClass, lane)) {
          return this.#wait({ logical, asked, policyClass, signal }, lane, overrides);
        }
      }
      return this.#select({ logical, asked, policyClass, signal }, 0);
    } catch (error) {
      throw this.#refused(logical, error, signal);
    }
  }

  /** Parks a request in its pool's queue. Throws or rejects with what refuses it, or with what ended its wait. */
  async #wait(admitted: Admitted, lane: LaneKey, overrides: ClassifyOverrides | undefined): Promise<Selection> {
    const { logical, asked, policyClass, signal } = admitted;
    const { core, ingressAtMs } = logical;
    let release = () => {};
    try {
      // Refuses what is wrong with the request, before it waits for nothing.
      const cachedTokens = bestCachedTokens(core, asked);
      const rawTokens = asked.tokens.length;
      release = this.#requestIds.hold(asked.requestId);
      const since = this.#clock.now();
      const parked: Parked = {
        ...{ policyClass, lane, ingressAtMs, rawTokens, cachedTokens },
        strictPriority: asked.strictPriority ?? 0,
        priorityJump: asked.priorityJump ?? 0,
        dueAtMs: overrides?.dueAtMs,
        costTokens: overrides?.schedulingCostTokens ?? Math.max(1, rawTokens - cachedTokens),
      };
      const run = (keptSlots: ReadonlySet<number> | undefined) => {
        release();
        assertWanted(logical, signal);
        const turn = keptSlots ? { ...admitted, asked: { ...asked, keptSlots } } : admitted;
        return this.#select(turn, this.#clock.now() - since);
      };
      const selection = await core.queue.park(parked, run, signal);
      if (!signal?.aborted) return selection;
      selection.booking.abort();
      throw signal.reason;
    } catch (error) {
      release();
      throw this.#refused(logical, error, signal);
    }
  }

  /** Selects, books and answers: one step. */
  #select({ logical, asked, policyClass }: Admitted, queueWaitMs: number): Selection {
    const { core, lifecycle } = logical;
    const selection = core.select(asked);
    const { booking } = selection;
    if (lifecycle) booking.observe(lifecycle);
    if (core.affinity && asked.sessionContext) {
      booking.observe(new AffinityFollower(core.affinity, asked.sessionContext));
    }
    if (this.#isOver()) {
      // The router was closed meanwhile, by a component of the policy.
      const error = new WarmrouteError("shutting_down", "the router was closed while it selected");
      booking.abort(error);
      throw error;
    }
    const answer = new RouterSelection(selection, {
      booking: this.#handles.owner(booking),
      policy: core.policy.label,
      policyClass: policyClass.name,
      queueWaitMs,
      admission: this,
      logical,
    });
    this.#decisions?.add(decided(answer, this.#clock.now()));
    return answer;
  }

  /** A request that gets no worker is over; answers why. */
  #refused({ lifecycle, request }: LogicalRequest, error: unknown, signal: AbortSignal | undefined): unknown {
    this.#noted(request, error);
    // A caller that gave up is no failure of the request.
    lifecycle?.aborted(signal?.aborted ? undefined : error);
    return error;
  }

  /** Writes into the decision log why a request got no worker. */
  #noted(request: SelectRequest, error: unknown): unknown {
    this.#decisions?.add(undecided(request, error, this.#clock.now()));
    return error;
  }

  /** The class of a request; its uncached tokens are looked up only where the profile asks for them. */
  #classOf(core: SelectionCore, request: SelectRequest, set: string | undefined): PolicyClass {
    const classes = this.#classes;
    let uncached = 0;
    if (classes.usesBuckets) {
      const cached = bestCachedTokens(core, request);
      uncached = request.tokens.length - cached;
    }
    if (set !== undefined) return classes.named(set, uncached)!;
    const asked = request.policyClass;
    if (asked !== undefined && !classes.has(asked)) this.unknownClasses++;
    return classes.forClient(asked, uncached);
  }
}

/** A request on its way through the queue. */
interface Admitted {
  readonly logical: LogicalRequest;
  readonly asked: PoolRequest;
  readonly policyClass: PolicyClass;
  readonly signal: AbortSignal | undefined;
}

/** Somebody still waits for the answer. Throws what ended the request. */
function assertWanted({ lifecycle }: LogicalRequest, signal: AbortSignal | undefined): void {
  signal?.throwIfAborted();
  if (!lifecycle || lifecycle.live) return;
  throw new WarmrouteError("lifecycle_ended", "the request ended before a worker was chosen for it");
}
