import { WarmrouteError } from "../core/errors.js";
import type { WorkerRank, WorkerRecord } from "../core/types.js";
import type { DispatchTarget } from "../dispatch/index.js";
import { type TrackOptions, trackResponse } from "../dispatch/track.js";
import type { BookingHandle } from "../scheduling/bookings/booking-handle.js";
import type { PoolSelection } from "../scheduling/pool.js";
import type { Selection } from "./contract.js";
import type { LogicalRequest, Reselecting } from "./logical-request.js";
import { checkRetryOptions } from "./read-request.js";

/** Makes what a host sends to a worker. */
type Dispatching = (target: DispatchTarget) => NonNullable<Selection["dispatch"]>;

/** What a selection knows beyond the pool's answer. */
export interface SelectedBy {
  readonly booking: BookingHandle;
  readonly policy: string;
  readonly policyClass: string;
  readonly queueWaitMs: number;
  readonly admission: Reselecting;
  readonly logical: LogicalRequest;
}

/** A decision as the caller gets it: the core's answer, the dispatch target, and the booking's tracker. */
export class RouterSelection implements Selection {
  readonly requestId: string;
  readonly worker: WorkerRank;
  readonly record: WorkerRecord;
  declare readonly url?: string;
  readonly overlap: Selection["overlap"];
  readonly cachedTokens: number;
  readonly effectivePrefillTokens: number;
  readonly evidence: Selection["evidence"];
  readonly reason: Selection["reason"];
  readonly policy: string;
  readonly policyClass: string;
  readonly queueWaitMs: number;
  declare readonly tieDraw?: number;
  declare readonly dispatch?: NonNullable<Selection["dispatch"]>;
  declare readonly candidates?: NonNullable<Selection["candidates"]>;
  readonly booking: BookingHandle;

  readonly #admission: Reselecting;
  readonly #logical: LogicalRequest;
  /** Makes `dispatch`, also of the selections that follow a retry. */
  #dispatching: Dispatching | undefined;

  constructor(from: PoolSelection, by: SelectedBy) {
    this.requestId = from.requestId;
    this.worker = from.worker;
    this.record = from.record;
    if (from.record.url !== undefined) this.url = from.record.url;
    this.overlap = from.overlap;
    this.cachedTokens = from.cachedTokens;
    this.effectivePrefillTokens = from.effectivePrefillTokens;
    this.evidence = from.evidence;
    this.reason = from.reason;
    this.policy = by.policy;
    if (from.tieDraw !== undefined) this.tieDraw = from.tieDraw;
    if (from.candidates !== undefined) this.candidates = from.candidates;
    this.booking = by.booking;
    this.policyClass = by.policyClass;
    this.queueWaitMs = by.queueWaitMs;
    this.#admission = by.admission;
    this.#logical = by.logical;
  }

  /** Has every attempt of the request say how it is sent. The booking is over when that fails. */
  dispatchedBy(dispatching: Dispatching): this {
    this.#dispatching = dispatching;
    try {
      return Object.assign(this, { dispatch: dispatching(targetOf(this)) });
    } catch (error) {
      this.booking.abort(error);
      throw error;
    }
  }

  async retry(options: { signal?: AbortSignal } = {}): Promise<Selection> {
    checkRetryOptions(options);
    const { signal } = options;
    const { booking, requestId } = this;
    if (!booking.live) {
      throw new WarmrouteError("lifecycle_ended", "the request has ended, so there is nothing to select again for");
    }
    const logical = this.#logical;
    logical.core.kernel.assertFree();
    booking.retry();
    const again = await this.#admission.again({ ...logical, request: { ...logical.request, requestId } }, signal);
    return this.#dispatching ? (again as RouterSelection).dispatchedBy(this.#dispatching) : again;
  }

  track(response: Response | Promise<Response>, options?: TrackOptions): Promise<Response> {
    const { unitsPerToken } = this.#logical.core;
    return trackResponse(this.booking, response, { unitsPerToken, ...options });
  }
}

/** Where the request of a selection goes. */
export function targetOf({ worker, record }: Selection): DispatchTarget {
  return { ...worker, url: record.url, engine: record.engine, dpSize: record.dpSize };
}
