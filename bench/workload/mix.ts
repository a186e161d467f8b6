// Made-up 64-bit hashes, the same in bench/native/mix.h: two 32-bit finalisers over a stream's two seeds.

/** A 32-bit bijection that mixes well (the finaliser of MurmurHash3). */
export function mix32(x: number): number {
  x = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

/** What a stream of hashes stands for; part of its seeds. */
export const Stream = { SYSTEM: 0, TAIL: 1, UNKNOWN: 2, SYSTEM_NAME: 3, TAIL_NAME: 4, GROWTH: 5 } as const;

/**
 * Writes `count` hashes of a stream at block `from` of `out` (two words a hash, low first). `owner` is the session or
 * prompt, `rank` the one whose names these are.
 */
export function writeHashes(
  out: Uint32Array,
  from: number,
  count: number,
  stream: number,
  owner: number,
  rank = 0,
  start = 0,
): void {
  const low = mix32(mix32((owner << 3) | stream) + Math.imul(rank, 0x9e3779b1));
  const high = mix32(mix32(((owner << 3) | stream) ^ 0x5bd1e995) + Math.imul(rank, 0x7feb352d));
  for (let i = 0; i < count; i++) {
    const at = 2 * (from + i);
    out[at] = mix32(low + Math.imul(start + i, 0x27d4eb2f));
    out[at + 1] = mix32(high + Math.imul(start + i, 0x165667b1));
  }
}

/** Shuffles a list in place (R. Fisher, F. Yates), always in the same way. */
export function shuffle<T>(list: T[]): T[] {
  for (let i = list.length - 1; i > 0; i--) {
    const k = mix32(i ^ 0x3c6ef372) % (i + 1);
    [list[i], list[k]] = [list[k]!, list[i]!];
  }
  return list;
}
