import { armTimer, type Clock, timerClock } from "../core/clock.js";
import { WarmrouteError } from "../core/errors.js";
import type { Logger } from "../core/log.js";

/** How often a router that closes looks whether its requests have ended. */
const drainPollMs = 10;
/** What the plugins' own close() gets at least. */
const pluginPatienceMs = 1000;

/** What a router does as it ends. */
export interface Ending {
  /** Requests that are booked or being classified. */
  live(): number;
  /** Aborts them. */
  abort(error: WarmrouteError): void;
  /** Closes classifier and policies; must not reject. */
  closePlugins(): Promise<unknown>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A router's end: open, then closing while requests finish, then ended. */
export class Lifetime {
  #closing = false;
  #ended = false;
  #closed: Promise<void> | undefined;

  get ended(): boolean {
    return this.#ended;
  }

  /** For what begins something. Throws `shutting_down`. */
  assertOpen(): void {
    if (this.#closing) throw closing();
  }

  /** For what requests that are still live depend on. Throws `shutting_down`. */
  assertNotEnded(): void {
    if (this.#ended) throw closing();
  }

  /** Ends once; a second call waits for the first. */
  close(graceMs: number, ending: Ending): Promise<void> {
    this.#closing = true;
    // Known before anything is closed: what closes may close the router once more.
    if (!this.#closed) {
      let ended!: (closing: Promise<void>) => void;
      this.#closed = new Promise((resolve) => {
        ended = resolve;
      });
      ended(this.#close(graceMs, ending));
    }
    return this.#closed;
  }

  async #close(graceMs: number, ending: Ending): Promise<void> {
    const clock = timerClock(ending.clock);
    const end = clock.now() + graceMs;
    // Polled: in an isolate, no request may wait for what another one does.
    for (let left = graceMs; left > 0 && ending.live() > 0; left = end - clock.now()) {
      await new Promise<void>((resolve) => armTimer(clock, resolve, Math.min(left, drainPollMs)));
    }
    this.#ended = true;
    ending.abort(closing());
    const patienceMs = Math.max(end - clock.now(), pluginPatienceMs);
    if (!(await endsWithin(clock, patienceMs, ending.closePlugins()))) {
      ending.log.warn("a plugin has not ended with its close(); the router goes without it", { patienceMs });
    }
  }
}

const closing = () => new WarmrouteError("shutting_down", "the router is closed");

/** Whether something ends in time; it must not reject. Arms a timer only meanwhile. */
async function endsWithin(clock: Clock, ms: number, something: Promise<unknown>): Promise<boolean> {
  let stop = () => {};
  const late = new Promise<false>((resolve) => {
    stop = armTimer(clock, () => resolve(false), ms);
  });
  const inTime = await Promise.race([something.then(() => true), late]);
  stop();
  return inTime;
}
