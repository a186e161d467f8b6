// The choice among costs (spec/scheduling.md §4.4–4.5, CONTRACT.md §5). A row takes part when its cost
// is below +Infinity.
//
// Rows are summed and searched in groups of 64. A group's sum is that of its even rows plus that of its
// odd rows; the sum of a prefix is the sum of its groups in order, and within a group of its rows in
// order. The oracle in test/oracle adds in the same order.
import { costColumn, groupColumn, paddedRows, probabilityColumn } from "../load/columns";
import { EXP_STEPS, expReady, expSteps } from "./exp";
import { randomUnit } from "./random";

const GROUP: usize = 64 << 3; // bytes of a column

let lowest: f64 = Infinity;
let found: i32 = 0;
let tied: u32 = 0;
let tieIndex: u32 = 0;
let draw: f64 = NaN;

/** The lowest cost that the last choice saw; +Infinity when there was none. */
export function pickMinimum(): f64 {
  return lowest;
}
/** Rows that had the lowest cost at the last choice at temperature 0; else 0. */
export function pickTied(): u32 {
  return tied;
}
/** Which of the tied rows was taken. */
export function pickTieIndex(): u32 {
  return tieIndex;
}
/** The number in [0, 1) that the last choice drew; NaN when it drew none. */
export function pickDraw(): f64 {
  return draw;
}

/** Finds the lowest cost, and that of each group. */
function findLowest(): void {
  const costs = costColumn();
  const end = <usize>paddedRows() << 3;
  let group = groupColumn();
  let least = Infinity;
  for (let from: usize = 0; from < end; from += GROUP, group += 8) {
    const to = min(from + GROUP, end);
    let a = f64x2.splat(Infinity);
    let b = a;
    for (let i = from; i < to; i += 32) {
      a = f64x2.pmin(a, v128.load(costs + i));
      b = f64x2.pmin(b, v128.load(costs + i, 16));
    }
    a = f64x2.pmin(a, b);
    const m = min(f64x2.extract_lane(a, 0), f64x2.extract_lane(a, 1));
    store<f64>(group, m);
    least = min(least, m);
  }
  lowest = least;
}

/** Counts the rows with the lowest cost; `found` is the `k`-th of them, in row order. */
function findTied(k: u32): u32 {
  const costs = costColumn();
  const end = <usize>paddedRows() << 3;
  const least = f64x2.splat(lowest);
  let group = groupColumn();
  let n: u32 = 0;
  for (let from: usize = 0; from < end; from += GROUP, group += 8) {
    if (load<f64>(group) != lowest) continue;
    const to = min(from + GROUP, end);
    for (let i = from; i < to; i += 16) {
      const hits = i64x2.bitmask(f64x2.eq(v128.load(costs + i), least));
      if (!hits) continue;
      if (k - n < <u32>popcnt(hits)) found = <i32>(i >> 3) + (k > n || hits == 2 ? 1 : 0);
      n += popcnt(hits);
    }
  }
  return n;
}

/**
 * Chooses a row; -1 when none takes part. At temperature 0 the lowest cost, one draw among several;
 * above 0 by range-normalised softmax, always one draw.
 */
export function pickRow(temperature: f64): i32 {
  draw = NaN;
  tied = 0;
  tieIndex = 0;
  findLowest();
  if (lowest == Infinity) return -1;
  if (temperature > 0) return sampled(temperature);
  tied = findTied(0);
  if (tied > 1) {
    draw = randomUnit();
    tieIndex = <u32>(draw * <f64>tied); // below `tied`: draws end at 1 - 2^-53
    findTied(tieIndex);
  }
  return found;
}

/** The highest cost below +Infinity. */
function findHighest(): f64 {
  const costs = costColumn();
  const end = <usize>paddedRows() << 3;
  const never = f64x2.splat(Infinity);
  const low = f64x2.splat(lowest);
  let a = low;
  let b = low;
  for (let i: usize = 0; i < end; i += 32) {
    const c = v128.load(costs + i);
    const d = v128.load(costs + i, 16);
    a = f64x2.pmax(a, v128.bitselect(c, low, f64x2.lt(c, never)));
    b = f64x2.pmax(b, v128.bitselect(d, low, f64x2.lt(d, never)));
  }
  a = f64x2.pmax(a, b);
  return max(f64x2.extract_lane(a, 0), f64x2.extract_lane(a, 1));
}

/** Fills the probability column with e^(-(cost - low) / ((high - low) T)); answers the sum. */
function weigh(temperature: f64): f64 {
  const costs = costColumn();
  const out = probabilityColumn();
  const end = <usize>paddedRows() << 3;
  // Odds depend on relative gaps alone; a quarter of each cost keeps the widest gap finite.
  const low = lowest * 0.25;
  const range = findHighest() * 0.25 - low;
  const slope = range > 0 ? max(-EXP_STEPS / (range * temperature), -f64.MAX_VALUE) : 0;
  const quarter = f64x2.splat(0.25);
  const lows = f64x2.splat(low);
  const slopes = f64x2.splat(slope);
  let group = groupColumn();
  let total = 0.0;
  expReady();
  for (let from: usize = 0; from < end; from += GROUP, group += 8) {
    const to = min(from + GROUP, end);
    let s = f64x2.splat(0);
    for (let i = from; i < to; i += 16) {
      // A cost of +Infinity becomes -Infinity or NaN here, and weighs 0.
      const gap = f64x2.sub(f64x2.mul(v128.load(costs + i), quarter), lows);
      const e = expSteps(f64x2.mul(gap, slopes));
      v128.store(out + i, e);
      s = f64x2.add(s, e);
    }
    const sum = f64x2.extract_lane(s, 0) + f64x2.extract_lane(s, 1);
    store<f64>(group, sum);
    total += sum;
  }
  return total;
}

/** The first row with a weight whose cumulative weight reaches the drawn share of the total. */
function sampled(temperature: f64): i32 {
  const total = weigh(temperature);
  draw = randomUnit();
  const target = draw * total;
  const weights = probabilityColumn();
  const end = <usize>paddedRows() << 3;
  let group = groupColumn();
  let reached = 0.0;
  let before = 0.0;
  let chosen: usize = 0;
  for (let from: usize = 0; from < end && (reached < target || reached == 0); from += GROUP, group += 8) {
    const sum = load<f64>(group);
    if (sum == 0) continue;
    chosen = from;
    before = reached;
    reached += sum;
  }
  let last = -1;
  for (let i = chosen, to = min(chosen + GROUP, end); i < to; i += 8) {
    const weight = load<f64>(weights + i);
    if (weight == 0) continue;
    last = <i32>(i >> 3);
    before += weight;
    if (before >= target) break;
  }
  return last;
}

/** Fills the probability column with each row's chance of being chosen; draws nothing. */
export function fillProbabilities(temperature: f64): void {
  const out = probabilityColumn();
  const end = <usize>paddedRows() << 3;
  findLowest();
  let total = 0.0;
  if (lowest < Infinity && temperature > 0) total = weigh(temperature);
  else {
    const costs = costColumn();
    total = lowest < Infinity ? <f64>findTied(0) : 1;
    const least = f64x2.splat(lowest < Infinity ? lowest : -Infinity);
    for (let i: usize = 0; i < end; i += 16) {
      v128.store(out + i, v128.and(f64x2.eq(v128.load(costs + i), least), f64x2.splat(1)));
    }
  }
  for (let i: usize = 0; i < end; i += 16) v128.store(out + i, f64x2.div(v128.load(out + i), f64x2.splat(total)));
}
