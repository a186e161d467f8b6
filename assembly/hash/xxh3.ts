// XXH3-64 with a seed, every length class. Formulas: the XXH3 specification,
// doc/xxhash_spec.md of the xxHash project.
import { avalanche, avalanche64, fold, fold2, lanes } from "./fold";
import {
  FLIP_1_TO_3,
  FLIP_4_TO_8,
  FLIP_EMPTY,
  FLIP_HIGH,
  FLIP_LOW,
  KEYS,
  PRIME32_1,
  PRIME32_2,
  PRIME32_3,
  PRIME64_1,
  PRIME64_2,
  PRIME64_3,
  PRIME64_4,
  PRIME64_5,
  SECRET,
  useSeed,
} from "./secret";

/** XXH3-64 of `len` bytes at `p`, any alignment. */
export function xxh3_64(p: usize, len: usize, seed: u64): u64 {
  if (len <= 16) return upTo16(p, len, seed);
  if (len <= 128) return upTo128(p, len, seed);
  if (len <= 240) return upTo240(p, len, seed);
  useSeed(seed);
  return avalanche(<u64>len * PRIME64_1 + lanes(longSum(p, len)));
}

function upTo16(p: usize, len: usize, seed: u64): u64 {
  if (len > 8) return nineTo16(load<u64>(p), load<u64>(p + len - 8), len, seed);
  if (len >= 4) {
    const word = (<u64>load<u32>(p) << 32) | <u64>load<u32>(p + len - 4);
    let h = word ^ (FLIP_4_TO_8 - (seed ^ (<u64>swapHalf(<u32>seed) << 32)));
    h ^= rotl<u64>(h, 49) ^ rotl<u64>(h, 24);
    h *= 0x9fb21c651e98df25;
    h ^= (h >> 35) + <u64>len;
    h *= 0x9fb21c651e98df25;
    return h ^ (h >> 28);
  }
  if (!len) return avalanche64(seed ^ FLIP_EMPTY);
  const first = <u32>load<u8>(p);
  const middle = <u32>load<u8>(p + (len >> 1));
  const last = <u32>load<u8>(p + len - 1);
  const word = (first << 16) | (middle << 24) | last | (<u32>len << 8);
  return avalanche64(<u64>word ^ (FLIP_1_TO_3 + seed));
}

/** XXH3-64 of 9 to 16 bytes, given as the first and the last eight of them. */
// @ts-ignore: decorator
@inline export function nineTo16(first: u64, last: u64, len: u64, seed: u64): u64 {
  const low = first ^ (FLIP_LOW + seed);
  const high = last ^ (FLIP_HIGH - seed);
  return avalanche(len + swapBytes(low) + high + fold(low, high));
}

// Two 32-bit halves at once: the chain of sequence hashes waits for this, and bswap<u64>
// of the compiler has a longer path.
// @ts-ignore: decorator
@inline function swapBytes(x: u64): u64 {
  return (<u64>swapHalf(<u32>x) << 32) | <u64>swapHalf(<u32>(x >> 32));
}

// @ts-ignore: decorator
@inline function swapHalf(x: u32): u32 {
  return rotl<u32>(x & 0xff00ff00, 8) | rotr<u32>(x & 0x00ff00ff, 8);
}

// 17 to 128 bytes: pairs of 16-byte pieces from both ends towards the middle.
function upTo128(p: usize, len: usize, seed: u64): u64 {
  let sum: u64 = <u64>len * PRIME64_1;
  const last = p + len - 16;
  for (let i: usize = 0; i < (len + 31) >> 5 << 4; i += 16) {
    sum += seededFold(p + i, SECRET + (i << 1), seed) + seededFold(last - i, SECRET + (i << 1) + 16, seed);
  }
  return avalanche(sum);
}

// 129 to 240 bytes: all pieces in order, the last one at the end.
function upTo240(p: usize, len: usize, seed: u64): u64 {
  let sum: u64 = <u64>len * PRIME64_1;
  const end = len & ~15;
  for (let i: usize = 0; i < 128; i += 16) sum += seededFold(p + i, SECRET + i, seed);
  sum = avalanche(sum);
  for (let i: usize = 128; i < end; i += 16) sum += seededFold(p + i, SECRET + i - 125, seed);
  return avalanche(sum + seededFold(p + len - 16, SECRET + 119, seed));
}

function seededFold(p: usize, secret: usize, seed: u64): u64 {
  return fold(load<u64>(p) ^ (load<u64>(secret) + seed), load<u64>(p, 8) ^ (load<u64>(secret, 8) - seed));
}

// One 16-byte column of a 64-byte stripe: lane += swapped data + low × high of (data ^ key).
// @ts-ignore: decorator
@inline function accumulate(lane: v128, data: v128, key: v128): v128 {
  const mixed = v128.xor(data, key);
  const low = v128.shuffle<i32>(mixed, mixed, 0, 2, 0, 2);
  const high = v128.shuffle<i32>(mixed, mixed, 1, 3, 1, 3);
  return i64x2.add(i64x2.add(lane, v128.shuffle<i64>(data, data, 1, 0)), i64x2.extmul_low_i32x4_u(low, high));
}

// @ts-ignore: decorator
@inline function scramble(lane: v128, key: v128): v128 {
  return i64x2.mul(v128.xor(v128.xor(lane, i64x2.shr_u(lane, 47)), key), i64x2.splat(PRIME32_1));
}

/** More than 240 bytes, up to the last avalanche; the sum is that of both lanes. Needs useSeed(). */
export function longSum(p: usize, len: usize): v128 {
  let a = i64x2(PRIME32_3, PRIME64_1);
  let b = i64x2(PRIME64_2, PRIME64_3);
  let c = i64x2(PRIME64_4, PRIME32_2);
  let d = i64x2(PRIME64_5, PRIME32_1);
  const last = p + len - 64;
  let key = KEYS;
  for (let left = (len - 1) >> 6; ; left--) {
    if (!left) {
      // The last stripe reaches back into the one before, and has a key of its own.
      p = last;
      key = KEYS + 121;
    }
    a = accumulate(a, v128.load(p), v128.load(key));
    b = accumulate(b, v128.load(p, 16), v128.load(key, 16));
    c = accumulate(c, v128.load(p, 32), v128.load(key, 32));
    d = accumulate(d, v128.load(p, 48), v128.load(key, 48));
    if (!left) break;
    p += 64;
    key += 8;
    if (key == KEYS + 128) {
      a = scramble(a, v128.load(KEYS, 128));
      b = scramble(b, v128.load(KEYS, 144));
      c = scramble(c, v128.load(KEYS, 160));
      d = scramble(d, v128.load(KEYS, 176));
      key = KEYS;
    }
  }
  return i64x2.add(
    fold2(v128.xor(a, v128.load(KEYS, 11)), v128.xor(b, v128.load(KEYS, 27))),
    fold2(v128.xor(c, v128.load(KEYS, 43)), v128.xor(d, v128.load(KEYS, 59))),
  );
}
