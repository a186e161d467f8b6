import type { Clock } from "../core/clock.js";

interface Timer {
  readonly atMs: number;
  readonly run: () => void;
}

/** A clock that moves only when it is told to, with timers that run as it passes them. */
export class VirtualClock implements Clock {
  #nowMs: number;
  readonly #timers = new Set<Timer>();

  /** Starts at `nowMs`, 0 unless given. */
  constructor(nowMs = 0) {
    this.#nowMs = nowMs;
  }

  now(): number {
    return this.#nowMs;
  }

  setTimeout(run: () => void, ms: number): unknown {
    const timer = { atMs: this.#nowMs + Math.max(0, ms), run };
    this.#timers.add(timer);
    return timer;
  }

  clearTimeout(timer: unknown): void {
    this.#timers.delete(timer as Timer);
  }

  /** Timers that are armed. */
  get armed(): number {
    return this.#timers.size;
  }

  /** Moves on by `ms` and runs the timers on the way, the earliest first; what they start settles before the next. */
  async advance(ms: number): Promise<void> {
    const end = this.#nowMs + ms;
    await settled();
    for (let timer = this.#next(end); timer; timer = this.#next(end)) {
      this.#timers.delete(timer);
      this.#nowMs = timer.atMs;
      timer.run();
      await settled();
    }
    this.#nowMs = end;
  }

  /** The earliest timer up to an instant; of those of one instant the first armed. */
  #next(endMs: number): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (timer.atMs <= endMs && (!next || timer.atMs < next.atMs)) next = timer;
    return next;
  }
}

/** Every promise that is settled has told who waits for it. */
const settled = () => new Promise<void>((resolve) => setTimeout(resolve, 0));
