// Sequence hashes in plain JavaScript, to build queries with: seq[0] = local[0], then XXH3-64 (seed 1337) over the 16
// bytes seq[i−1], local[i]. 64-bit arithmetic in 32-bit halves: BigInt would take minutes for the larger pools.

// XXH3's 9-to-16-byte path: (secret[24..31] ^ secret[32..39]) + 1337 and (secret[40..47] ^ secret[48..55]) − 1337.
const FLIP_A_HIGH = 0x6782737b;
const FLIP_A_LOW = 0xea423ef2;
const FLIP_B_HIGH = 0xaf56bc3b;
const FLIP_B_LOW = 0x09964d01;
// Multiplier of the final avalanche, 0x165667919E3779F9.
const PRIME_HIGH = 0x16566791;
const PRIME_LOW = 0x9e3779f9;
const WORD = 2 ** 32;

/** Upper 32 bits of the product of two unsigned 32-bit numbers. */
function upper(a: number, b: number): number {
  const al = a & 0xffff;
  const ah = a >>> 16;
  const bl = b & 0xffff;
  const bh = b >>> 16;
  const mid = ah * bl + ((al * bl) >>> 16);
  return (ah * bh + Math.floor(mid / 65536) + Math.floor((al * bh + (mid & 0xffff)) / 65536)) >>> 0;
}

const lower = (a: number, b: number): number => Math.imul(a, b) >>> 0;

const swap = (x: number): number => ((x << 24) | ((x & 0xff00) << 8) | ((x >>> 8) & 0xff00) | (x >>> 24)) >>> 0;

/** Writes the sequence hashes of `count` local hashes (two words a hash, low first), from block 0 of both arrays. */
export function chain(locals: Uint32Array, count: number, out: Uint32Array): void {
  if (count === 0) return;
  let low = locals[0]!;
  let high = locals[1]!;
  out[0] = low;
  out[1] = high;
  for (let i = 1; i < count; i++) {
    const a0 = (low ^ FLIP_A_LOW) >>> 0;
    const a1 = (high ^ FLIP_A_HIGH) >>> 0;
    const b0 = (locals[2 * i]! ^ FLIP_B_LOW) >>> 0;
    const b1 = (locals[2 * i + 1]! ^ FLIP_B_HIGH) >>> 0;
    const second = upper(a0, b0) + lower(a0, b1) + lower(a1, b0);
    const third = upper(a0, b1) + upper(a1, b0) + lower(a1, b1) + Math.floor(second / WORD);
    const foldLow = (lower(a0, b0) ^ third) >>> 0;
    const foldHigh = (second ^ (upper(a1, b1) + Math.floor(third / WORD))) >>> 0;
    const sum = 16 + swap(a1) + b0 + foldLow;
    const hashHigh = (swap(a0) + b1 + foldHigh + Math.floor(sum / WORD)) >>> 0;
    const hashLow = ((sum >>> 0) ^ (hashHigh >>> 5)) >>> 0;
    high = (upper(hashLow, PRIME_LOW) + lower(hashLow, PRIME_HIGH) + lower(hashHigh, PRIME_LOW)) >>> 0;
    low = (lower(hashLow, PRIME_LOW) ^ high) >>> 0;
    out[2 * i] = low;
    out[2 * i + 1] = high;
  }
}
