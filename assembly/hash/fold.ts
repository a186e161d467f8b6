// The arithmetic XXH3 is made of: "fold", the two halves of a 64 × 64 → 128 bit product
// XORed together, and the final avalanche. WebAssembly has no such product, so it is put
// together from four 32 × 32 → 64 bit ones.

const LOW32: u64 = 0xffffffff;

/** XXH3's avalanche. */
// @ts-ignore: decorator
@inline export function avalanche(h: u64): u64 {
  h ^= h >> 37;
  h *= 0x165667919e3779f9;
  return h ^ (h >> 32);
}

/** XXH64's avalanche, which XXH3 uses for inputs of up to 3 bytes. */
// @ts-ignore: decorator
@inline export function avalanche64(h: u64): u64 {
  h ^= h >> 33;
  h *= 0xc2b2ae3d27d4eb4f;
  h ^= h >> 29;
  h *= 0x165667b19e3779f9;
  return h ^ (h >> 32);
}

/** High half XOR low half of a × b. */
// @ts-ignore: decorator
@inline export function fold(a: u64, b: u64): u64 {
  const al = a & LOW32;
  const ah = a >> 32;
  const bl = b & LOW32;
  const bh = b >> 32;
  const t = al * bh + ((al * bl) >> 32);
  const u = ah * bl + (t & LOW32);
  return (ah * bh + (t >> 32) + (u >> 32)) ^ (a * b);
}

/**
 * fold() of the two words of x in lane 0, and of the two words of y in lane 1.
 *
 * Engines widen both operands of an extended multiplication first, so the words are laid
 * out as (low, low, high, high) once and each product costs three instructions. A blend
 * stands where a mask would need a constant built in every turn of a loop.
 */
// @ts-ignore: decorator
@inline export function fold2(x: v128, y: v128): v128 {
  const a = v128.shuffle<i32>(x, y, 0, 4, 1, 5);
  const b = v128.shuffle<i32>(x, y, 2, 6, 3, 7);
  const c = v128.shuffle<i64>(b, b, 1, 0);
  const ll = i64x2.extmul_low_i32x4_u(a, b);
  const hh = i64x2.extmul_high_i32x4_u(a, b);
  const lh = i64x2.extmul_low_i32x4_u(a, c);
  const hl = i64x2.extmul_high_i32x4_u(a, c);
  const t = i64x2.add(hl, i64x2.shr_u(ll, 32));
  const u = i64x2.add(lh, v128.shuffle<i32>(t, i64x2.splat(0), 0, 5, 2, 7));
  const high = i64x2.add(i64x2.add(hh, i64x2.shr_u(t, 32)), i64x2.shr_u(u, 32));
  return v128.xor(high, v128.shuffle<i32>(ll, i64x2.shl(u, 32), 0, 5, 2, 7));
}

/** Sum of the two lanes. */
// @ts-ignore: decorator
@inline export function lanes(v: v128): u64 {
  return i64x2.extract_lane(v, 0) + i64x2.extract_lane(v, 1);
}
