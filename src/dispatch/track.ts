import { WarmrouteError } from "../core/errors.js";

/** The verbs of a booking that a response drives. Exactly one of `complete` and `abort` is called, once. */
export interface TrackedBooking {
  sent(): void;
  firstToken(): void;
  complete(): void;
  abort(error?: unknown): void;
}

/**
 * Follows the response of a dispatch and ends the booking exactly once: `firstToken()` at the first byte of a
 * good answer, `complete()` at its end, `abort()` when the dispatch rejects, the status is an error, the body
 * breaks or the reader cancels. The booking is released before anything else that could fail.
 *
 * The body is passed on chunk by chunk, never read ahead, so that back-pressure reaches the worker.
 * Rejects with what the dispatch rejected with.
 */
export async function trackResponse(
  booking: TrackedBooking,
  response: Response | Promise<Response>,
): Promise<Response> {
  try {
    booking.sent();
    const answer = await response;
    if (!answer.ok) {
      booking.abort(new WarmrouteError("upstream_failed", `the worker answered with status ${answer.status}`));
      return answer;
    }
    if (answer.body === null) {
      booking.complete();
      return answer;
    }
    return new Response(follow(booking, answer.body), answer);
  } catch (error) {
    booking.abort(error);
    throw error;
  }
}

function follow(booking: TrackedBooking, body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
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
            booking.complete();
            controller.close();
            return;
          }
          if (!begun) {
            begun = true;
            booking.firstToken();
          }
          controller.enqueue(value);
        } catch (error) {
          if (ended) return;
          ended = true;
          booking.abort(error);
          controller.error(error);
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
