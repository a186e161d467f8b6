/** Where time comes from: the wall for a running router, a virtual one for replay and tests. */
export interface Clock {
  /** Monotonic milliseconds from an arbitrary origin. */
  now(): number;
  /** Calls `run` once, after `ms` milliseconds of this clock; the runtime's own timer where a clock has none. */
  setTimeout?(run: () => void, ms: number): unknown;
  /** Takes back what setTimeout() answered. */
  clearTimeout?(timer: unknown): void;
}

/** The runtime's monotonic clock. */
export const systemClock: Clock = { now: () => performance.now() };

/** A timer that is set to more than this many milliseconds fires at once. */
export const longestTimerMs = 2 ** 31 - 1;

/** What timers of a clock go by: its own time, unless it leaves them to the runtime. */
export const timerClock = (clock: Clock): Clock => (clock.setTimeout ? clock : systemClock);

/** Arms a timer of the clock, for at most `longestTimerMs`; answers how to take it back. */
export function armTimer(clock: Clock, run: () => void, ms: number): () => void {
  const delay = Math.max(0, Math.min(ms, longestTimerMs));
  if (clock.setTimeout) {
    const timer = clock.setTimeout(run, delay);
    return () => clock.clearTimeout?.(timer);
  }
  const timer = setTimeout(run, delay);
  return () => clearTimeout(timer);
}
