// How a ratio is made: two sides take turns, each round carries a checksum of its answers, and a ratio exists only
// while the sums agree.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** One timed round of one side. */
export interface Round {
  /** Per operation of the row (a call, a lookup, a block). */
  nanoseconds: number;
  /** Checksum of the round's answers. */
  sum: string;
}

/** One of the two things compared. A round first discards a pass: caches hold the other side's data until then. */
export interface Side {
  readonly name: string;
  round(): Round | Promise<Round>;
}

export type Statistic = "min" | "median";

export interface Measured {
  ratio: number;
  /** The figure of each paired round. */
  samples: number[];
}

/** The sides gave different answers, so that their times say nothing. */
export class Disagreement extends Error {}

/** The value in the middle; of an even count the mean of the two. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

/** Lets the sides take turns for `rounds` rounds; the rounds of each side, in the order of `sides`. */
export async function takeTurns(sides: readonly Side[], rounds: number): Promise<Round[][]> {
  const turns: Round[][] = sides.map(() => []);
  for (let i = 0; i < rounds; i++) {
    for (const [k, side] of sides.entries()) turns[k]!.push(await side.round());
  }
  return turns;
}

/**
 * Time of `of` ÷ time of `against` over paired rounds: the quotient of the minima, or the median of the paired
 * quotients. Throws a Disagreement if the answers of any pair differ.
 */
export function ratio(of: readonly Round[], against: readonly Round[], statistic: Statistic): Measured {
  const samples = of.map((round, i) => {
    const other = against[i]!;
    if (round.sum !== other.sum) throw new Disagreement(`answers differ: checksum ${round.sum} and ${other.sum}`);
    return round.nanoseconds / other.nanoseconds;
  });
  const least = (rounds: readonly Round[]) => Math.min(...rounds.map((round) => round.nanoseconds));
  return { ratio: statistic === "min" ? least(of) / least(against) : median(samples), samples };
}

/** Two sides take turns; time of `of` ÷ time of `against`. */
export async function compare(of: Side, against: Side, rounds: number, statistic: Statistic): Promise<Measured> {
  const [ours, theirs] = await takeTurns([of, against], rounds);
  return ratio(ours!, theirs!, statistic);
}

/** Keeps what a timed loop computes alive, so that no compiler removes the loop. */
export let sink = 0;

/** Times `passes` calls of `pass`, each worth `operations` operations. `check` is the discarded pass. */
export function timed(operations: number, passes: number, pass: () => number, check: () => string): Round {
  const sum = check();
  sink ^= pass();
  const start = performance.now();
  for (let i = 0; i < passes; i++) sink ^= pass();
  return { nanoseconds: ((performance.now() - start) * 1e6) / (operations * passes), sum };
}

/** How many passes fill a round of `milliseconds`. */
export function passesFor(milliseconds: number, pass: () => number): number {
  let passes = 1;
  for (;;) {
    const start = performance.now();
    for (let i = 0; i < passes; i++) sink ^= pass();
    const took = performance.now() - start;
    if (took >= milliseconds / 2) return Math.max(1, Math.ceil((passes * milliseconds) / took));
    passes *= 2;
  }
}

/** Runs `pass` until it has made `calls` calls of the function under test, for the optimising compiler. */
export function warmUp(calls: number, callsInPass: number, pass: () => number): void {
  for (let done = 0; done < calls; done += callsInPass) sink ^= pass();
}

/**
 * A copy of a function that refers to nothing outside itself, with code of its own. The optimising compiler shares
 * code between the closures that one function makes: what is constant in each of them is a variable to all, and a
 * callee that differs is no longer inlined. Whoever times several of them needs a copy for each.
 */
export const fresh = <F extends (...given: never[]) => unknown>(made: F): F =>
  freshFunction([], `return ${made.toString()}`)() as F;

let copies = 0;

/** A function of this text that shares no code with an earlier one of the same text. */
export const freshFunction = (parameters: readonly string[], body: string): ((...given: unknown[]) => unknown) =>
  new Function(...parameters, `${body}\n// ${copies++}`) as (...given: unknown[]) => unknown;

/**
 * A side that runs as well as it can: of at least three builds, one that is not behind the best. One JavaScript index
 * in ten lies so badly in memory, and one loop in twenty is compiled so badly, that it stays several times slower.
 */
export async function wellBuilt(make: () => Side): Promise<Side> {
  let best = Number.POSITIVE_INFINITY;
  for (let builds = 1; ; builds++) {
    collect();
    const side = make();
    const { nanoseconds } = await side.round();
    if (builds === 9 || (builds >= 3 && nanoseconds <= 1.2 * best)) return side;
    best = Math.min(best, nanoseconds);
  }
}

/** Collects garbage now, so that one side does not pay for what another left behind. */
export const collect: () => void = (() => {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
})();
