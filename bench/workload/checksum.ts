// Checksums of answers. An answer to a lookup is a set of (rank, depth) pairs, so its sum ignores order.
import { mix32 } from "./mix.js";

/** The part of one (rank, depth) pair in a sum; depths of 0 are no answer. */
export const pairSum = (query: number, rank: number, depth: number): number =>
  mix32(Math.imul(rank + 1, 0x9e3779b1) + Math.imul(depth, 0x85ebca77) + Math.imul(query, 0xc2b2ae3d));

/** Sum over the dense depths of every rank. */
export function denseSum(query: number, depths: Uint32Array): number {
  let sum = 0;
  for (let rank = 0; rank < depths.length; rank++) {
    if (depths[rank] !== 0) sum += pairSum(query, rank, depths[rank]!);
  }
  return sum >>> 0;
}

/** Order matters: the sum of a list of 32-bit words. */
export function wordSum(words: Uint32Array): number {
  let sum = 0;
  for (let i = 0; i < words.length; i++) sum = Math.imul(sum ^ words[i]!, 0x01000193) + (sum >>> 15);
  return sum >>> 0;
}

export const hex = (sum: number): string => (sum >>> 0).toString(16).padStart(8, "0");
