/** A prediction as it goes into snapshots. */
export interface PredictionState {
  /** The kernel's name of the record. */
  id: number;
  generation: number;
  slot: number;
  /** Blocks that are shared with no other prompt: the rest of it, and the output. */
  ownBlocks: number;
  /** What is left of its time; absent where capacity decides. */
  expiresInMs?: number;
  /** The request that it follows; absent when that is over. */
  requestId?: string;
  /** Of a request: tokens of its own blocks, blocks that were held before it, and whether its worker answered. */
  ownTokens: number;
  heldBefore: number;
  answered: boolean;
}

export interface PredictionStats {
  live: number;
  /** Not made, or ended early, since the memory budget was used up. */
  dropped: number;
}
