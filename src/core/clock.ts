/** Where time comes from: the wall for a running router, a virtual one for replay and tests. */
export interface Clock {
  /** Monotonic milliseconds from an arbitrary origin. */
  now(): number;
}

/** The runtime's monotonic clock. */
export const systemClock: Clock = { now: () => performance.now() };

/** A timer that is set to more than this many milliseconds fires at once. */
export const longestTimerMs = 2 ** 31 - 1;
