// exp and tanh for two numbers at once, from IEEE operations alone, so that every runtime gets the
// same bits. A single number goes through the same code.
//
// e^x = 2^(k/1024) · 2^(f/1024) with k whole and |f| ≤ 1/2. The first factor comes from a table and
// an addition to its exponent, the second from its series up to f^3; after P. T. P. Tang, "Table-driven
// implementation of the exponential function in IEEE floating-point arithmetic", 1989. Relative error:
// below 4e-16 + |x| · 2e-16, the second part from the rounding of x itself.

const STEPS: i32 = 1024;
/** Steps in one natural unit: 1024 / ln 2. */
export const EXP_STEPS: f64 = 1477.3197218702985;
/** 1.5 · 2^52: adding it leaves the nearest whole number in the low bits. */
const ROUND: f64 = 6755399441055744.0;
/** Smaller results are 0: they would not be normal numbers. */
const LOWEST: f64 = -1022 * 1024;
const HIGHEST: f64 = 1023 * 1024;

const C1: f64 = 6.769015435155716e-4; // ln 2 / 1024
const C2: f64 = C1 * C1 / 2;
const C3: f64 = C1 * C1 * C1 / 6;

/** 2^(j/1024) less j << 42, so that k << 42 adds its exponent and takes away the place in the table. */
const table: usize = memory.data(STEPS << 3, 16);

/** Fills the table at first use; call it before expSteps(). */
export function expReady(): void {
  if (load<u64>(table)) return;
  for (let j = 0; j < STEPS; j++) {
    const x = <f64>j * C1;
    let sum = 1.0;
    for (let n = 20.0; n > 0; n--) sum = 1 + (sum * x) / n;
    store<u64>(table + (<usize>j << 3), reinterpret<u64>(sum) - (<u64>j << 42));
  }
}

/** e^(s / EXP_STEPS) for each lane of s; 0 below -1022 · 1024 and for NaN. */
// @ts-ignore: decorator
@inline export function expSteps(s: v128): v128 {
  const lowest = f64x2.splat(LOWEST);
  const normal = f64x2.ge(s, lowest);
  s = f64x2.pmin(f64x2.splat(HIGHEST), f64x2.pmax(lowest, s));
  const shifted = f64x2.add(s, f64x2.splat(ROUND));
  const f = f64x2.sub(s, f64x2.sub(shifted, f64x2.splat(ROUND)));
  const p = f64x2.mul(
    f,
    f64x2.add(f64x2.splat(C1), f64x2.mul(f, f64x2.add(f64x2.splat(C2), f64x2.mul(f, f64x2.splat(C3))))),
  );
  const i = (<usize>i64x2.extract_lane(shifted, 0) & <usize>(STEPS - 1)) << 3;
  const j = (<usize>i64x2.extract_lane(shifted, 1) & <usize>(STEPS - 1)) << 3;
  const entries = v128.load_lane<u64>(table + j, v128.load_zero<u64>(table + i), 1);
  const power = i64x2.add(entries, i64x2.shl(shifted, 42));
  return v128.and(f64x2.add(power, f64x2.mul(power, p)), normal);
}

function expOf(x: v128): v128 {
  expReady();
  return expSteps(f64x2.mul(x, f64x2.splat(EXP_STEPS)));
}

/** tanh x for each lane, with an absolute error below 1e-15: (1 - q) / (1 + q) with q = e^(-2|x|). */
function tanhOf(x: v128): v128 {
  const one = f64x2.splat(1);
  const q = expOf(f64x2.mul(f64x2.abs(x), f64x2.splat(-2)));
  const t = f64x2.div(f64x2.sub(one, q), f64x2.add(one, q));
  return v128.bitselect(x, t, f64x2.splat(-0.0));
}

/** What preferred taints with these sums of matched weights multiply a cost by (spec/scheduling.md §3.4). */
// @ts-ignore: decorator
@inline export function taintPair(sums: v128): v128 {
  return expOf(f64x2.neg(tanhOf(sums)));
}

/** e^x; 0 below -708.39, and never above 2^1023. */
export function exp(x: f64): f64 {
  return f64x2.extract_lane(expOf(f64x2.splat(x)), 0);
}

/** tanh x, with an absolute error below 1e-15. */
export function tanh(x: f64): f64 {
  return f64x2.extract_lane(tanhOf(f64x2.splat(x)), 0);
}

/** One taint multiplier as taintPair() has it. */
export function taintMultiplier(sum: f64): f64 {
  return f64x2.extract_lane(taintPair(f64x2.splat(sum)), 0);
}
