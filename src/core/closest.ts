/** The name that a mistyped one most likely meant: fewest edits, at most a third of its length (one, if shorter); else undefined. */
export function closest(name: string, names: Iterable<string>): string | undefined {
  let best: string | undefined;
  // Of a single letter nothing is left to go by.
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

/** Levenshtein distance, one row at a time. */
function edits(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
