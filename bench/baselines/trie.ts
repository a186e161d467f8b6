// The fair JavaScript index: a trie with a Map a node, keyed by the upper 53 bits of a local hash as a double (cheaper
// than bigint and string keys), the ranks of a node in a small array, and each rank's own names in a Map of its own.

export interface TrieIndex {
  /** Depth of each rank in the last lookup, in blocks. */
  readonly depths: Uint32Array;
  /** Stores `count` blocks from the root; hashes and names are blocks `from` … of their arrays. */
  store(rank: number, locals: Uint32Array, names: Uint32Array, from: number, count: number): void;
  /** Removes the blocks with these names of a rank, and what no rank needs any more. Answers how many it knew. */
  remove(rank: number, names: Uint32Array, from: number, count: number): number;
  /** Leading blocks that each rank holds, into `depths`; answers the depth of the walk. */
  find(locals: Uint32Array, count: number): number;
}

interface Node {
  children: Map<number, Node> | null;
  ranks: number[];
  parent: Node | null;
  key: number;
}

/**
 * An empty trie. `named` keeps each rank's names, which only `remove` needs. Refers to nothing outside itself, so that
 * each user can have code of its own (`fresh`).
 */
export function trieIndex(ranks: number, named: boolean): TrieIndex {
  const node = (ranksOf: number[], parent: Node | null, key: number): Node => ({
    children: null,
    ranks: ranksOf,
    parent,
    key,
  });
  const root = node([], null, 0);
  const names: Map<number, Node>[] = named ? Array.from({ length: ranks }, () => new Map()) : [];
  const depths = new Uint32Array(ranks);

  /** 53 bits of the hash at `block`, as a double. */
  const keyAt = (words: Uint32Array, block: number): number =>
    words[2 * block]! * 0x200000 + (words[2 * block + 1]! >>> 11);

  function sameRanks(a: readonly number[], b: readonly number[]): boolean {
    if (a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
    return true;
  }

  function store(rank: number, locals: Uint32Array, own: Uint32Array, from: number, count: number): void {
    const known = named ? names[rank]! : undefined;
    let at = root;
    for (let i = from; i < from + count; i++) {
      const key = keyAt(locals, i);
      at.children ??= new Map();
      let child = at.children.get(key);
      if (!child) {
        child = node([rank], at, key);
        at.children.set(key, child);
      } else if (child.ranks.indexOf(rank) < 0) child.ranks.push(rank);
      known?.set(keyAt(own, i), child);
      at = child;
    }
  }

  function remove(rank: number, own: Uint32Array, from: number, count: number): number {
    const known = names[rank]!;
    let removed = 0;
    for (let i = from; i < from + count; i++) {
      const name = keyAt(own, i);
      let at = known.get(name);
      if (!at) continue;
      known.delete(name);
      removed++;
      const held = at.ranks.indexOf(rank);
      if (held >= 0) {
        at.ranks[held] = at.ranks[at.ranks.length - 1]!;
        at.ranks.pop();
      }
      while (at.parent && at.ranks.length === 0 && !at.children?.size) {
        const parent: Node = at.parent;
        parent.children!.delete(at.key);
        if (parent.children!.size === 0) parent.children = null;
        at = parent;
      }
    }
    return removed;
  }

  function find(locals: Uint32Array, count: number): number {
    depths.fill(0);
    let at = root.children?.get(keyAt(locals, 0));
    if (!at) return 0;
    const active = at.ranks.slice();
    let last = at.ranks;
    let i = 1;
    for (; i < count; i++) {
      at = at.children?.get(keyAt(locals, i));
      if (!at) break;
      const holders = at.ranks;
      if (sameRanks(holders, last)) continue;
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

  return { depths, store, remove, find };
}
