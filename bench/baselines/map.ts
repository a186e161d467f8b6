// What one writes first: a Map from sequence hash (bigint) to the ranks that hold the block.

export interface MapIndex {
  /** Depth of each rank in the last lookup, in blocks. */
  readonly depths: Uint32Array;
  /** Stores a chain of sequence hashes. */
  store(rank: number, sequences: BigUint64Array, count: number): void;
  /** Leading blocks that each rank holds, into `depths`; answers the depth of the walk. */
  find(sequences: readonly bigint[]): number;
}

/** An empty map. Refers to nothing outside itself, so that each user can have code of its own (`fresh`). */
export function mapIndex(ranks: number): MapIndex {
  const blocks = new Map<bigint, number[]>();
  const depths = new Uint32Array(ranks);

  function store(rank: number, sequences: BigUint64Array, count: number): void {
    for (let i = 0; i < count; i++) {
      const holders = blocks.get(sequences[i]!);
      if (!holders) blocks.set(sequences[i]!, [rank]);
      else if (holders.indexOf(rank) < 0) holders.push(rank);
    }
  }

  function find(sequences: readonly bigint[]): number {
    depths.fill(0);
    let last = blocks.get(sequences[0]!);
    if (!last) return 0;
    const active = last.slice();
    let i = 1;
    for (; i < sequences.length; i++) {
      const holders = blocks.get(sequences[i]!);
      if (!holders) break;
      let same = holders.length === last.length;
      for (let k = 0; same && k < holders.length; k++) same = holders[k] === last[k];
      if (same) continue;
      last = holders;
      for (let k = active.length - 1; k >= 0; k--) {
        if (holders.indexOf(active[k]!) >= 0) continue;
        depths[active[k]!] = i;
        active[k] = active[active.length - 1]!;
        active.pop();
      }
      if (active.length === 0) return i;
    }
    for (const rank of active) depths[rank] = i;
    return i;
  }

  return { depths, store, find };
}
