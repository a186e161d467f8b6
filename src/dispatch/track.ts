import { WarmrouteError } from "../core/errors.js";
import { describe } from "../core/ids.js";
import type { WorkerRank } from "../core/types.js";
import { AnswerMeter, type ReportedUsage } from "./answer-meter.js";
import { failureReason } from "./dispatcher.js";

/** The verbs of a booking that a response drives. Exactly one of `complete` and `abort` is called, once. */
export interface TrackedBooking {
  readonly worker: WorkerRank;
  sent(): void;
  firstToken(): void;
  /** More of the answer has come. */
  renew(): void;
  /** `n` more tokens of the answer have come. */
  tokens(n: number): void;
  complete(usage?: ReportedUsage): void;
  abort(error?: unknown): void;
}

export interface TrackOptions {
  /** The caller's signal: an answer that breaks once it has fired is no failure of the worker. */
  signal?: AbortSignal;
  /** What a token of the engine counts as; 1 unless given. */
  unitsPerToken?: number;
  /** Hears, once, that a good answer broke off before its end (`upstream_failed`). The body's reader gets the same. */
  onBroken?: (error: WarmrouteError) => void;
}

/**
 * Follows the response of a dispatch and ends the booking exactly once: `firstToken()` at the first byte of a
 * good answer, `tokens(n)` as items of an event stream come, `complete()` with the reported usage at its end, `abort()` when the dispatch rejects, the status is an error, the body
 * breaks (`upstream_failed`) or the reader cancels. The booking is released before anything else that could fail.
 *
 * The body is passed on chunk by chunk, never read ahead, so that back-pressure reaches the worker.
 * Rejects with what the dispatch rejected with.
 */
export async function trackResponse(
  booking: TrackedBooking,
  response: Response | Promise<Response>,
  options: TrackOptions = {},
): Promise<Response> {
  try {
    booking.sent();
    const answer = await response;
    assertResponse(answer);
    if (!answer.ok) {
      booking.abort(new WarmrouteError("upstream_failed", `the worker answered with status ${answer.status}`));
      return answer;
    }
    if (answer.body === null) {
      booking.complete();
      return answer;
    }
    const meter = new AnswerMeter(answer.headers?.get("content-type") ?? null);
    return new Response(follow(booking, answer.body, meter, options), answer);
  } catch (error) {
    booking.abort(error);
    throw error;
  }
}

/** By shape: HTTP clients bring classes of their own. */
function assertResponse(value: unknown): void {
  if (typeof value === "object" && value !== null && "ok" in value && "body" in value) return;
  const message = `response must be a Response, or a promise of one, not ${describe(value)}`;
  throw new WarmrouteError("invalid_request", message, { path: "response" });
}

function follow(
  booking: TrackedBooking,
  body: ReadableStream<Uint8Array>,
  meter: AnswerMeter,
  options: TrackOptions,
): ReadableStream<Uint8Array> {
  const { unitsPerToken = 1 } = options;
  const reader = body.getReader();
  let begun = false;
  let ended = false;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          // A cancel settles the pending read; the booking has ended by then.
          if (ended) return;
          if (done) {
            ended = true;
            booking.complete(scaled(meter.usage, unitsPerToken));
            controller.close();
            return;
          }
          if (!begun) {
            begun = true;
            booking.firstToken();
          } else booking.renew();
          const items = meter.read(value);
          if (items > 0) booking.tokens(items * unitsPerToken);
          controller.enqueue(value);
        } catch (cause) {
          if (ended) return;
          ended = true;
          const gaveUp = options.signal?.aborted || (cause as { name?: unknown } | undefined)?.name === "AbortError";
          const broken = gaveUp ? undefined : brokenOff(booking.worker, cause);
          booking.abort(broken ?? cause);
          controller.error(broken ?? cause);
          if (broken) options.onBroken?.(broken);
        }
      },
      async cancel(reason) {
        if (!ended) {
          ended = true;
          booking.abort(reason);
        }
        // Nobody listens any more: a worker whose stream fails to close is no one's error.
        await reader.cancel(reason).catch(() => {});
      },
    },
    { highWaterMark: 0 },
  );
}

/** A usage in the router's unit; what is no count stays as it is. */
function scaled(usage: ReportedUsage | undefined, by: number): ReportedUsage | undefined {
  if (!usage || by === 1) return usage;
  const { prompt_tokens, completion_tokens, total_tokens } = usage;
  return Object.fromEntries(
    Object.entries({ prompt_tokens, completion_tokens, total_tokens }).map(([name, n]) => [name, n && n * by]),
  );
}

const brokenOff = (worker: WorkerRank, cause: unknown) =>
  new WarmrouteError("upstream_failed", `worker ${worker.workerId} broke its answer off`, {
    cause,
    details: { ...worker, reason: failureReason(cause) },
  });
