import type { SessionContext, WorkerRank } from "../../core/types.js";
import type { BookingObserver } from "../bookings/booking.js";
import type { SessionAffinity } from "./affinity.js";

/** Keeps a session's binding in step with one attempt of a request. */
export class AffinityFollower implements BookingObserver {
  readonly #affinity: SessionAffinity;
  readonly #session: SessionContext;
  #worker: WorkerRank | undefined;

  constructor(affinity: SessionAffinity, session: SessionContext) {
    this.#affinity = affinity;
    this.#session = session;
  }

  selected(worker: WorkerRank): void {
    this.#worker = worker;
    this.#affinity.began(this.#session.sessionId);
  }

  /** The session moves once a worker answers: a dispatch that fails leaves it where it was. */
  responding(worker: WorkerRank): void {
    this.#affinity.answered(this.#session.sessionId, worker);
  }

  completed(): void {
    this.responding(this.#worker!);
    this.#end();
  }

  aborted(): void {
    this.#end();
  }

  retry(): void {
    this.#affinity.ended(this.#session.sessionId);
  }

  #end(): void {
    const { sessionId, sessionFinal } = this.#session;
    this.#affinity.ended(sessionId, sessionFinal);
  }

  sent(): void {}
  generated(): void {}
  contextFloor(): void {}
}
