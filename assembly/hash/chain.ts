// Sequence hashes: each names a whole prefix, its own block included.
//
//   seq[0] = local[0]
//   seq[i] = XXH3-64(LE64(seq[i-1]) ‖ LE64(local[i]), seed 1337)
import { nineTo16 } from "./xxh3";

/** Seed of the chain, and of local hashes without a LoRA name or salt. */
export const BASE_SEED: u64 = 1337;

/** The sequence hash that follows `prev` when the next block's local hash is `local`. */
// @ts-ignore: decorator
@inline export function chainStep(prev: u64, local: u64): u64 {
  return nineTo16(prev, local, 16, BASE_SEED);
}

/**
 * Sequence hashes of `n` blocks from their local hashes. With `hasParent` the first block
 * follows the sequence hash `parent`, else it starts a sequence. `seqs` may be `locals`.
 */
export function chainBlocks(locals: usize, n: u32, seqs: usize, hasParent: bool, parent: u64): void {
  if (!n) return;
  if (hasParent) return chainOn(locals, n, seqs, parent);
  const first = load<u64>(locals);
  store<u64>(seqs, first);
  chainOn(locals + 8, n - 1, seqs + 8, first);
}

/** Sequence hashes of `n` blocks after the sequence hash `prev`. */
export function chainOn(locals: usize, n: u32, seqs: usize, prev: u64): void {
  for (; n; n--) {
    prev = chainStep(prev, load<u64>(locals));
    store<u64>(seqs, prev);
    locals += 8;
    seqs += 8;
  }
}
