import { WarmrouteError } from "../../core/errors.js";
import type { Logger } from "../../core/log.js";
import type { RequestIds } from "./request-ids.js";

/** Looking again sooner than this is not worth it. */
const graceMs = 1000;

/**
 * Ends bookings that show no progress for a lease (spec: scheduling.md §1.6, but by progress and not by age). Nothing
 * is armed: whoever reads or changes loads sweeps first. Live bookings are only looked through when one may be over.
 */
export class Leases {
  /** Bookings that were ended so. */
  expired = 0;
  readonly #ids: RequestIds;
  readonly #leaseMs: number;
  readonly #log: Logger;
  /** No lease is over before this. */
  #nextMs = Number.NEGATIVE_INFINITY;

  /** A lease of 0 ms never ends. */
  constructor(ids: RequestIds, leaseMs: number, log: Logger) {
    this.#ids = ids;
    this.#leaseMs = leaseMs > 0 ? leaseMs : Number.POSITIVE_INFINITY;
    this.#log = log;
  }

  sweep(nowMs: number): void {
    if (nowMs < this.#nextMs || this.#leaseMs === Number.POSITIVE_INFINITY) return;
    let oldest = nowMs;
    for (const booking of this.#ids) {
      if (nowMs - booking.progressAtMs < this.#leaseMs) {
        oldest = Math.min(oldest, booking.progressAtMs);
        continue;
      }
      this.expired++;
      const { requestId, worker } = booking;
      this.#log.warn("a booking showed no progress and was ended", { requestId, ...worker, leaseMs: this.#leaseMs });
      booking.abort(
        new WarmrouteError("lifecycle_ended", `the request showed no progress for ${this.#leaseMs / 1000} s`),
      );
    }
    this.#nextMs = Math.max(oldest + this.#leaseMs, nowMs + graceMs);
  }
}
