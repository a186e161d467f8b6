import type { WorkerRank, WorkerRecord } from "../core/types.js";
import { trackResponse } from "../dispatch/track.js";
import type { PoolBooking } from "../scheduling/booking.js";
import type { PoolSelection } from "../scheduling/pool.js";
import type { Selection } from "./contract.js";

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
  readonly policyClass = "default";
  readonly queueWaitMs = 0;
  declare readonly tieDraw?: number;
  declare readonly candidates?: NonNullable<Selection["candidates"]>;
  readonly booking: PoolBooking;

  constructor(from: PoolSelection, policy: string) {
    this.requestId = from.requestId;
    this.worker = from.worker;
    this.record = from.record;
    if (from.record.url !== undefined) this.url = from.record.url;
    this.overlap = from.overlap;
    this.cachedTokens = from.cachedTokens;
    this.effectivePrefillTokens = from.effectivePrefillTokens;
    this.evidence = from.evidence;
    this.reason = from.reason;
    this.policy = policy;
    if (from.tieDraw !== undefined) this.tieDraw = from.tieDraw;
    if (from.candidates !== undefined) this.candidates = from.candidates;
    this.booking = from.booking;
  }

  track(response: Response | Promise<Response>): Promise<Response> {
    return trackResponse(this.booking, response);
  }
}
