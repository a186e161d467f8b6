// What one writes first: a Map from sequence hash (bigint) to the ranks that hold the block.

export class MapIndex {
  private readonly blocks = new Map<bigint, number[]>();
  /** Depth of each rank in the last lookup, in blocks. */
  readonly depths: Uint32Array;

  constructor(ranks: number) {
    this.depths = new Uint32Array(ranks);
  }

  /** Stores a chain of sequence hashes. */
  store(rank: number, sequences: BigUint64Array, count: number): void {
    for (let i = 0; i < count; i++) {
      const ranks = this.blocks.get(sequences[i]!);
      if (!ranks) this.blocks.set(sequences[i]!, [rank]);
      else if (ranks.indexOf(rank) < 0) ranks.push(rank);
    }
  }

  /** Leading blocks that each rank holds, into `depths`; answers the depth of the walk. */
  find(sequences: readonly bigint[]): number {
    const depths = this.depths.fill(0);
    let last = this.blocks.get(sequences[0]!);
    if (!last) return 0;
    const active = last.slice();
    let i = 1;
    for (; i < sequences.length; i++) {
      const ranks = this.blocks.get(sequences[i]!);
      if (!ranks) break;
      let same = ranks.length === last.length;
      for (let k = 0; same && k < ranks.length; k++) same = ranks[k] === last[k];
      if (same) continue;
      last = ranks;
      for (let k = active.length - 1; k >= 0; k--) {
        if (ranks.indexOf(active[k]!) >= 0) continue;
        depths[active[k]!] = i;
        active[k] = active[active.length - 1]!;
        active.pop();
      }
      if (active.length === 0) return i;
    }
    for (const rank of active) depths[rank] = i;
    return i;
  }
}
