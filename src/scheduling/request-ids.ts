import { WarmrouteError } from "../core/errors.js";
import { describe } from "../core/ids.js";
import type { BookingOwner, PoolBooking } from "./booking.js";

/** The live bookings of a router by request id, over all its pools. */
export class RequestIds {
  #live = new Map<string, PoolBooking>();
  #next = 1;

  get(requestId: string): PoolBooking | undefined {
    return this.#live.get(requestId);
  }

  /** The id as given, or a fresh one. Throws `duplicate_request` when it has a live booking. */
  claim(given: string | undefined): string {
    if (given !== undefined) {
      if (!this.#live.has(given)) return given;
      throw new WarmrouteError("duplicate_request", `request ${describe(given)} has a live booking`, {
        details: { requestId: given },
      });
    }
    let id: string;
    do id = `warmroute-${this.#next++}`;
    while (this.#live.has(id));
    return id;
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
