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
}

export interface PredictionStats {
  live: number;
  /** Not made, or ended early, since the memory budget was used up. */
  dropped: number;
}
