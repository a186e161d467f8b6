import type { Clock } from "../core/clock.js";

/** The clock of a replay: it stands still until the simulation sets it, in whole microseconds. */
export class VirtualClock implements Clock {
  micros = 0;

  now(): number {
    return this.micros / 1000;
  }
}
