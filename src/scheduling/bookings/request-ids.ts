import { WarmrouteError } from "../../core/errors.js";
import { describe } from "../../core/ids.js";
import type { BookingOwner, PoolBooking } from "./booking.js";

/** The live bookings of a router by request id, over all its pools, and the ids of requests that wait for one. */
export class RequestIds {
  #live = new Map<string, PoolBooking>();
  readonly #waiting = new Set<string>();
  #next = 1;

  get(requestId: string): PoolBooking | undefined {
    return this.#live.get(requestId);
  }

  /** The id as given, or a fresh one. Throws `duplicate_request` when it has a live booking or waits for one. */
  claim(given: string | undefined): string {
    if (given !== undefined) {
      const waits = this.#waiting.has(given);
      if (!waits && !this.#live.has(given)) return given;
      const why = waits ? "is waiting in a queue" : "has a live booking";
      throw new WarmrouteError("duplicate_request", `request ${describe(given)} ${why}`, {
        details: { requestId: given },
      });
    }
    let id: string;
    do id = `warmroute-${this.#next++}`;
    while (this.#live.has(id) || this.#waiting.has(id));
    return id;
  }

  /** Keeps an id for a request that waits, until the answer is called. Throws `duplicate_request`. */
  hold(given: string | undefined): () => void {
    if (given === undefined) return () => {};
    const id = this.claim(given);
    this.#waiting.add(id);
    let held = true;
    return () => {
      if (held) this.#waiting.delete(id);
      held = false;
    };
  }

  /** Live bookings. */
  get size(): number {
    return this.#live.size;
  }

  /** The live bookings; those that end meanwhile may or may not be among them. */
  [Symbol.iterator](): MapIterator<PoolBooking> {
    return this.#live.values();
  }

  /** The live bookings that one pool made. */
  of(owner: BookingOwner): PoolBooking[] {
    return [...this.#live.values()].filter((booking) => booking.owner === owner);
  }

  set(booking: PoolBooking): void {
    this.#live.set(booking.requestId, booking);
  }

  delete(booking: PoolBooking): void {
    this.#live.delete(booking.requestId);
  }
}
