// Kernels for blocks of 16, 32 and 64 tokens; all need useSeed(). Those of local hashes alone
// answer how many they made; 64 tokens need none: the long path of XXH3 is as fast.
//
// These forms measured fastest. Where local hashes run alone, a mix of vector and scalar
// products keeps all ports of a core busy. Where the chain runs along, all products of the
// block are vectors, since the chain takes the scalar ports.
import { chainOn, chainStep } from "./chain";
import { avalanche, fold, fold2, lanes } from "./fold";
import { KEYS, PRIME64_1 } from "./secret";
import { longSum } from "./xxh3";

// Sums of a block's folds, all in vectors.

// @ts-ignore: decorator
@inline function sum16(p: usize): v128 {
  return i64x2.add(
    fold2(v128.xor(v128.load(p), v128.load(KEYS)), v128.xor(v128.load(p, 48), v128.load(KEYS, 16))),
    fold2(v128.xor(v128.load(p, 16), v128.load(KEYS, 32)), v128.xor(v128.load(p, 32), v128.load(KEYS, 48))),
  );
}

// The six outer pieces of a block of 32 tokens.
// @ts-ignore: decorator
@inline function outer32(p: usize): v128 {
  return i64x2.add(
    i64x2.add(
      fold2(v128.xor(v128.load(p), v128.load(KEYS)), v128.xor(v128.load(p, 112), v128.load(KEYS, 16))),
      fold2(v128.xor(v128.load(p, 16), v128.load(KEYS, 32)), v128.xor(v128.load(p, 96), v128.load(KEYS, 48))),
    ),
    fold2(v128.xor(v128.load(p, 32), v128.load(KEYS, 64)), v128.xor(v128.load(p, 80), v128.load(KEYS, 80))),
  );
}

// @ts-ignore: decorator
@inline function sum32(p: usize): v128 {
  return i64x2.add(
    outer32(p),
    fold2(v128.xor(v128.load(p, 48), v128.load(KEYS, 96)), v128.xor(v128.load(p, 64), v128.load(KEYS, 112))),
  );
}

// Two blocks a turn, one in each lane; three folds are vectors, the fourth is scalar. An odd block is left.
export function locals16(p: usize, n: u32, locals: usize): u32 {
  const pairs = n >> 1;
  const k6 = load<u64>(KEYS, 48);
  const k7 = load<u64>(KEYS, 56);
  for (const end = locals + (<usize>pairs << 4); locals != end; locals += 16) {
    const k0 = v128.load(KEYS);
    const k2 = v128.load(KEYS, 16);
    const k4 = v128.load(KEYS, 32);
    const sum = i64x2.add(
      i64x2.add(
        fold2(v128.xor(v128.load(p), k0), v128.xor(v128.load(p, 64), k0)),
        fold2(v128.xor(v128.load(p, 48), k2), v128.xor(v128.load(p, 112), k2)),
      ),
      fold2(v128.xor(v128.load(p, 16), k4), v128.xor(v128.load(p, 80), k4)),
    );
    const x = fold(load<u64>(p, 32) ^ k6, load<u64>(p, 40) ^ k7);
    const y = fold(load<u64>(p, 96) ^ k6, load<u64>(p, 104) ^ k7);
    store<u64>(locals, avalanche(64 * PRIME64_1 + i64x2.extract_lane(sum, 0) + x));
    store<u64>(locals, avalanche(64 * PRIME64_1 + i64x2.extract_lane(sum, 1) + y), 8);
    p += 128;
  }
  return pairs << 1;
}

// Six folds are vectors, the two inner ones are scalar.
export function locals32(p: usize, n: u32, locals: usize): u32 {
  for (const end = locals + (<usize>n << 3); locals != end; locals += 8) {
    const inner =
      fold(load<u64>(p, 48) ^ load<u64>(KEYS, 96), load<u64>(p, 56) ^ load<u64>(KEYS, 104)) +
      fold(load<u64>(p, 64) ^ load<u64>(KEYS, 112), load<u64>(p, 72) ^ load<u64>(KEYS, 120));
    store<u64>(locals, avalanche(128 * PRIME64_1 + lanes(outer32(p)) + inner));
    p += 128;
  }
  return n;
}

// Fused kernels. A step of the chain waits for the one before it, so that it runs LEAD blocks behind
// the local hashes: two independent pieces of work in each turn. The caller makes the first LEAD.
export const LEAD: u32 = 4;

// @ts-ignore: decorator
@inline function fused(p: usize, n: u32, locals: usize, seqs: usize, bytes: usize, wide: bool): void {
  let prev = load<u64>(locals);
  store<u64>(seqs, prev);
  locals += 8;
  seqs += 8;
  p += bytes * LEAD;
  const length = <u64>bytes * PRIME64_1;
  for (const end = locals + (<usize>(n - LEAD) << 3); locals != end; locals += 8) {
    prev = chainStep(prev, load<u64>(locals));
    const sum = !wide ? sum16(p) : bytes == 128 ? sum32(p) : longSum(p, bytes);
    store<u64>(locals, avalanche(length + lanes(sum)), (LEAD - 1) * 8);
    store<u64>(seqs, prev);
    seqs += 8;
    p += bytes;
  }
  chainOn(locals, LEAD - 1, seqs, prev);
}

/** Blocks of 16 tokens: code of their own, since a call in the loop would cost them a twentieth. */
export function fused16(p: usize, n: u32, locals: usize, seqs: usize): void {
  fused(p, n, locals, seqs, 64, false);
}

/** Blocks of 32 or 64 tokens. */
export function fusedWide(p: usize, n: u32, locals: usize, seqs: usize, bytes: usize): void {
  fused(p, n, locals, seqs, bytes, true);
}
