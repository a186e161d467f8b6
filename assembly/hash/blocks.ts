// Local and sequence hashes of a whole prompt in one call.
//
//   tokens: | u32 id | u32 id | …      block i = `window` ids from i · blockSize
//   locals: | u64 local hash | …       seqs: | u64 sequence hash | …
//
// Blocks of 16, 32 and 64 tokens have kernels of their own (kernels.ts); every other shape
// takes the generic path.
import { chainBlocks } from "./chain";
import { fused16, fusedWide, LEAD, locals16, locals32 } from "./kernels";
import { useSeed } from "./secret";
import { xxh3_64 } from "./xxh3";

export { BASE_SEED, chainBlocks, chainStep } from "./chain";
export { hashBlockWithMedia, mediaId, padToken } from "./media";
export { localSeed } from "./seed";

/** Complete windows of `window` tokens at a stride of `blockSize` in `count` tokens. */
// @ts-ignore: decorator
@inline export function blockCount(count: u32, blockSize: u32, window: u32): u32 {
  return !blockSize || window < blockSize || count < window ? 0 : (count - window) / blockSize + 1;
}

/**
 * Hashes the complete blocks of `count` tokens; answers how many there are.
 * `window` is blockSize, or blockSize + 1 for the pair windows of speculative decoding.
 * `seed` (BASE_SEED or localSeed()) enters the local hashes, and the chain only through them.
 * `locals` or `seqs` is 0 when the caller has no use for it.
 */
export function hashBlocks(
  tokens: usize, count: u32, blockSize: u32, window: u32, seed: u64, locals: usize, seqs: usize,
): u32 {
  if (!seqs) return localBlocks(tokens, count, blockSize, window, seed, locals);
  const n = blockCount(count, blockSize, window);
  // The chain reads a local hash before it writes that place, so both may share one array.
  const to = locals ? locals : seqs;
  if (n >= LEAD && window == blockSize && (window == 16 || window == 32 || window == 64)) {
    localBlocks(tokens, LEAD * window, window, window, seed, to);
    if (window == 16) fused16(tokens, n, to, seqs);
    else fusedWide(tokens, n, to, seqs, <usize>window << 2);
  } else {
    localBlocks(tokens, count, blockSize, window, seed, to);
    chainBlocks(to, n, seqs, false, 0);
  }
  return n;
}

/** As hashBlocks(), local hashes alone. */
export function localBlocks(
  tokens: usize, count: u32, blockSize: u32, window: u32, seed: u64, locals: usize,
): u32 {
  const n = blockCount(count, blockSize, window);
  if (!n || !locals) return n;
  useSeed(seed);
  let i: u32 = 0;
  if (window == blockSize) i = window == 16 ? locals16(tokens, n, locals) : window == 32 ? locals32(tokens, n, locals) : 0;
  const bytes = <usize>window << 2;
  const stride = <usize>blockSize << 2;
  for (; i < n; i++) store<u64>(locals + (<usize>i << 3), xxh3_64(tokens + <usize>i * stride, bytes, seed));
  return n;
}
