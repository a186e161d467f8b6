/// <reference lib="esnext.disposable" preserve="true" />
import type { Logger } from "../../core/log.js";
import type { WorkerRank } from "../../core/types.js";
import type { PoolBooking, Usage } from "./booking.js";

/** A booking as its caller holds it. The router does not hold it, so that one which nobody holds any more is found. */
export class BookingHandle implements Disposable {
  readonly #booking: PoolBooking;

  constructor(booking: PoolBooking) {
    this.#booking = booking;
  }

  get requestId(): string {
    return this.#booking.requestId;
  }
  get worker(): WorkerRank {
    return this.#booking.worker;
  }
  get live(): boolean {
    return this.#booking.live;
  }

  sent(): void {
    this.#booking.sent();
  }
  firstToken(): void {
    this.#booking.firstToken();
  }
  tokens(n: number): void {
    this.#booking.tokens(n);
  }
  renew(): void {
    this.#booking.renew();
  }
  complete(usage?: Usage | null): void {
    this.#booking.complete(usage);
  }
  abort(error?: unknown): void {
    this.#booking.abort(error);
  }
  retry(): void {
    this.#booking.retry();
  }
  prefillComplete(): void {
    this.#booking.prefillComplete();
  }
  outputBlock(decayFraction?: number): void {
    this.#booking.outputBlock(decayFraction);
  }
  free(): void {
    this.#booking.free();
  }
  [Symbol.dispose](): void {
    this.#booking.abort();
  }
}

/** Finds bookings whose handles were collected while they were live, and ends them. */
export class HandleNet {
  /** Bookings that were ended so. */
  forgotten = 0;
  readonly #log: Logger;
  /** Undefined on a runtime that has none: there leases end what was forgotten. */
  readonly #collected: FinalizationRegistry<PoolBooking> | undefined;

  constructor(log: Logger) {
    this.#log = log;
    if (typeof FinalizationRegistry !== "undefined") {
      this.#collected = new FinalizationRegistry((booking) => this.#end(booking));
    }
  }

  /** The one handle that owns a booking: when it is collected, so is the booking. */
  owner(booking: PoolBooking): BookingHandle {
    const handle = new BookingHandle(booking);
    this.#collected?.register(handle, booking);
    return handle;
  }

  #end(booking: PoolBooking): void {
    if (!booking.live) return;
    this.forgotten++;
    const { requestId, worker } = booking;
    this.#log.warn("a booking was forgotten: nothing holds it, and nothing ended it", { requestId, ...worker });
    booking.abort();
  }
}
