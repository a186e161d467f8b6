// One request on its way to a worker: classifier → class → selection, and again for its retries.
import type { Clock } from "../core/clock.js";
import { WarmrouteError } from "../core/errors.js";
import { parseU32, workerIdString } from "../core/ids.js";
import type { SessionContext, WorkerRank } from "../core/types.js";
import { checkTokens } from "../kernel/kernel.js";
import type { HandleNet } from "../scheduling/booking-handle.js";
import { bestCachedTokens } from "../scheduling/cached-tokens.js";
import type { RequestLifecycle } from "../scheduling/classifier/lifecycle.js";
import type { ClassifyOverrides } from "../scheduling/classifier/overrides.js";
import type { ClassifierRunner } from "../scheduling/classifier/runner.js";
import type { Leases } from "../scheduling/leases.js";
import type { PolicyClasses } from "../scheduling/policy-class.js";
import type { PoolRequest } from "../scheduling/pool.js";
import type { RequestIds } from "../scheduling/request-ids.js";
import { noAttributes } from "../scheduling/selection-context.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
import type { Selection, SelectRequest } from "./contract.js";
import type { LogicalRequest, Reselecting } from "./logical-request.js";
import { RouterSelection } from "./selection.js";

export interface AdmissionOptions {
  readonly classes: PolicyClasses;
  readonly clock: Clock;
  readonly requestIds: RequestIds;
  readonly classifier: ClassifierRunner | undefined;
  readonly leases: Leases;
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
  readonly #leases: Leases;
  readonly #handles: HandleNet;
  readonly #isOver: () => boolean;

  constructor({ classes, clock, requestIds, classifier, leases, handles, isOver }: AdmissionOptions) {
    this.#classes = classes;
    this.#clock = clock;
    this.#requestIds = requestIds;
    this.#classifier = classifier;
    this.#leases = leases;
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
    this.#leases.sweep(ingressAtMs);
    const classifier = this.#classifierFor(core, request);
    if (!classifier) return this.#select({ core, request, ingressAtMs, attributes, lifecycle: undefined });
    const { requestId, tokens } = request;
    if (requestId === undefined) {
      throw new WarmrouteError("lifecycle_required", "this router classifies requests, so each needs a requestId", {
        path: "requestId",
      });
    }
    checkTokens(tokens);
    const pin = pinOf(request);
    this.#requestIds.claim(requestId);
    const lifecycle = classifier.begin(requestId, tokens.length);
    return this.#classify({ core, request, ingressAtMs, attributes, lifecycle }, classifier, lifecycle, pin, signal);
  }

  /** One more attempt, after the booking of the one before has ended. */
  again(logical: LogicalRequest, signal: AbortSignal | undefined): Selection | Promise<Selection> {
    const { lifecycle } = logical;
    if (!lifecycle) return this.#select(logical, undefined, signal);
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
    const overrides = classifier.classify(lifecycle, input, signal);
    if (overrides instanceof Promise) return overrides.then((value) => this.#select(logical, value, signal));
    return this.#select(logical, overrides, signal);
  }

  #select(logical: LogicalRequest, overrides?: ClassifyOverrides, signal?: AbortSignal): Selection {
    const { core, request, lifecycle } = logical;
    try {
      signal?.throwIfAborted();
      if (lifecycle && !lifecycle.live) {
        throw new WarmrouteError("lifecycle_ended", "the request ended before its classification was done");
      }
      const policyClass = this.#classOf(core, request, overrides?.policyClass);
      const selection = core.select(poolRequest(logical, overrides));
      if (lifecycle) selection.booking.observe(lifecycle);
      if (this.#isOver()) {
        // The router was closed meanwhile, by a component of the policy.
        const error = new WarmrouteError("shutting_down", "the router was closed while it selected");
        selection.booking.abort(error);
        throw error;
      }
      const booking = this.#handles.owner(selection.booking);
      return new RouterSelection(selection, booking, core.policy.label, policyClass, this, logical);
    } catch (error) {
      // A caller that gave up is no failure of the request.
      lifecycle?.aborted(signal?.aborted ? undefined : error);
      throw error;
    }
  }

  /** The class of a request; its uncached tokens are looked up only where the profile asks for them. */
  #classOf(core: SelectionCore, request: SelectRequest, set: string | undefined): string {
    const classes = this.#classes;
    const uncached = classes.usesBuckets ? request.tokens.length - bestCachedTokens(core, request) : 0;
    if (set !== undefined) return classes.named(set, uncached)!.name;
    const asked = request.policyClass;
    if (asked !== undefined && !classes.has(asked)) this.unknownClasses++;
    return classes.forClient(asked, uncached).name;
  }
}

/** The request as the pool takes it: what the classifier set goes before what the caller said. */
function poolRequest({ request, attributes }: LogicalRequest, overrides: ClassifyOverrides | undefined): PoolRequest {
  if (attributes === undefined && overrides === undefined && request.sessionId === undefined) return request;
  const { affinityTarget, ...rest } = request;
  const sessionContext = sessionOf(request);
  const target = overrides?.target === undefined ? affinityTarget : overrides.target;
  const { strictPriority, priorityJump } = overrides ?? {};
  return {
    ...rest,
    ...(target && { affinityTarget: target }),
    ...(sessionContext && { sessionContext }),
    ...(attributes && { attributes }),
    ...(strictPriority !== undefined && { strictPriority }),
    ...(priorityJump !== undefined && { priorityJump }),
  };
}

function sessionOf({ sessionId, sessionContext }: SelectRequest): SessionContext | undefined {
  return sessionContext ?? (sessionId === undefined ? undefined : { sessionId });
}

function pinOf({ pinnedWorker }: SelectRequest): WorkerRank | undefined {
  if (!pinnedWorker) return undefined;
  return {
    workerId: workerIdString(pinnedWorker.workerId, "pinnedWorker.workerId", "invalid_request"),
    dpRank: parseU32(pinnedWorker.dpRank ?? 0, "pinnedWorker.dpRank"),
  };
}
