/** Comparing takes the product of the lengths, and nobody types a name that is longer. */
const longest = 200;

/**
 * The name that a mistyped one most likely meant: fewest edits, at most a third of its length or one; undefined if
 * there is none.
 */
export function closest(name: string, names: Iterable<string>): string | undefined {
  if (name.length > longest) return undefined;
  let best: string | undefined;
  // Of a single letter an edit leaves nothing to go by.
  let fewest = Math.min(name.length, Math.max(1, Math.floor(name.length / 3)) + 1);
  for (const candidate of names) {
    if (Math.abs(candidate.length - name.length) >= fewest) continue;
    const n = edits(name, candidate);
    if (n < fewest) {
      fewest = n;
      best = candidate;
    }
  }
  return best;
}

/** Letters added, dropped or replaced, or swapped with their neighbour (optimal string alignment), row by row. */
function edits(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min(replaced, row[j]! + 1, next[j - 1]! + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, before[j - 2]! + 1);
      next.push(least);
    }
    before = row;
    row = next;
  }
  return row[b.length]!;
}
