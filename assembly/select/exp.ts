// exp and tanh for two numbers at once, from IEEE operations alone, so that every runtime gets the
// same bits. A single number goes through the same code.

/** Below this exp answers 0: results there would not be normal numbers. */
const LOWEST: f64 = -708;
const HIGHEST: f64 = 709;

/**
 * e^x for each lane, with a relative error below 1e-15. x = k ln 2 + r with |r| ≤ ln 2 / 2 (the
 * two parts of ln 2 after W. Cody, W. Waite, 1980), e^r by its Taylor series up to r^13, by Estrin's
 * scheme. Below -708 the answer is 0; above 709 it is that of 709.
 */
// @ts-ignore: decorator
@inline export function expPair(x: v128): v128 {
  const normal = f64x2.ge(x, f64x2.splat(LOWEST));
  x = f64x2.min(f64x2.max(x, f64x2.splat(LOWEST)), f64x2.splat(HIGHEST));
  const k = f64x2.nearest(f64x2.mul(x, f64x2.splat(1.4426950408889634)));
  const r = f64x2.sub(
    f64x2.sub(x, f64x2.mul(k, f64x2.splat(6.93147180369123816490e-1))),
    f64x2.mul(k, f64x2.splat(1.90821492927058770002e-10)),
  );
  const r2 = f64x2.mul(r, r);
  const r4 = f64x2.mul(r2, r2);
  const r8 = f64x2.mul(r4, r4);
  const a = term(r, 1, 1);
  const b = term(r, 1.0 / 2, 1.0 / 6);
  const c = term(r, 1.0 / 24, 1.0 / 120);
  const d = term(r, 1.0 / 720, 1.0 / 5040);
  const e = term(r, 1.0 / 40320, 1.0 / 362880);
  const f = term(r, 1.0 / 3628800, 1.0 / 39916800);
  const g = term(r, 1.0 / 479001600, 1.0 / 6227020800);
  const low = f64x2.add(f64x2.add(a, f64x2.mul(b, r2)), f64x2.mul(f64x2.add(c, f64x2.mul(d, r2)), r4));
  const high = f64x2.add(f64x2.add(e, f64x2.mul(f, r2)), f64x2.mul(g, r4));
  const p = f64x2.add(low, f64x2.mul(high, r8));
  // Adding 1.5 × 2^52 + 1023 leaves k + 1023 in the low bits: shifted up, the exponent of 2^k.
  const scale = i64x2.shl(f64x2.add(k, f64x2.splat(6755399441055744.0 + 1023.0)), 52);
  return v128.and(f64x2.mul(p, scale), normal);
}

/** expPair() once in the module, for callers that are not in a hurry. */
function expOf(x: v128): v128 {
  return expPair(x);
}

// @ts-ignore: decorator
@inline function term(r: v128, even: f64, odd: f64): v128 {
  return f64x2.add(f64x2.splat(even), f64x2.mul(r, f64x2.splat(odd)));
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

/** e^x as expPair() has it. */
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
