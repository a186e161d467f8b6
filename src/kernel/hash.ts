import { budgetError, checkBlockSize, Kernel } from "./kernel.js";

let shared: Kernel | undefined;

/** A kernel without a pool, for hashing outside any router. */
export function sharedKernel(): Kernel {
  if (!shared || shared.failed) {
    shared = new Kernel({ blockSize: 1, maxRanks: 1, budgetBytes: 2 ** 30, ownNames: true, seed: 0n });
  }
  return shared;
}

const CHUNK = 1 << 20;

/** XXH3-64 over bytes of any length, chained over chunks of 1 MiB: each chunk's hash seeds the next. */
export function checksum(bytes: Uint8Array): bigint {
  const kernel = sharedKernel();
  const pointer = kernel.exports.textArea(CHUNK) >>> 0;
  if (pointer === 0) throw budgetError("a checksum");
  kernel.sync();
  const area = kernel.bytes(pointer, CHUNK);
  let hash = 0n;
  for (let from = 0; from < bytes.length; from += CHUNK) {
    const chunk = bytes.subarray(from, from + CHUNK);
    area.set(chunk);
    hash = kernel.exports.xxh3(pointer, chunk.length, hash);
  }
  return BigInt.asUintN(64, hash);
}

export interface PromptHashes {
  /** Hash of each complete block's tokens. */
  blockHashes: BigUint64Array;
  /** Hash of each whole prefix up to and including the block. */
  sequenceHashes: BigUint64Array;
}

export interface HashOptions {
  loraName?: string;
  cacheSalt?: string;
}

/**
 * Block and sequence hashes of a prompt (spec: indexer.md §1). Only complete blocks are hashed.
 * Throws `invalid_tokens` and `invalid_block_size`.
 */
export function hashTokens(
  tokens: Uint32Array | readonly number[],
  blockSize: number,
  options: HashOptions = {},
): PromptHashes {
  checkBlockSize(blockSize);
  const kernel = sharedKernel();
  const n = kernel.writeTokens(tokens);
  const seed = kernel.localSeed(options.loraName, options.cacheSalt);
  const blocks = kernel.hashPrompt(n, blockSize, seed);
  return {
    blockHashes: kernel.u64(kernel.exports.localsArea(), blocks).slice(),
    sequenceHashes: kernel.u64(kernel.exports.sequencesArea(), blocks).slice(),
  };
}
