import { checkBlockSize, Kernel } from "./kernel.js";

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

let hasher: Kernel | undefined;

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
  if (!hasher || hasher.failed) {
    hasher = new Kernel({ blockSize: 1, maxRanks: 1, budgetBytes: 2 ** 32, ownNames: true, seed: 0n });
  }
  const n = hasher.writeTokens(tokens);
  const seed = hasher.localSeed(options.loraName, options.cacheSalt);
  const blocks = hasher.exports.hashPrompt(n, blockSize, blockSize, BigInt.asIntN(64, seed));
  hasher.sync();
  return {
    blockHashes: hasher.u64(hasher.exports.localsArea(), blocks).slice(),
    sequenceHashes: hasher.sequences(blocks).slice(),
  };
}
