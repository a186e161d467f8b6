import { describe, expect, it } from "vitest";
import { mapIndex } from "../../bench/baselines/map.js";
import { Random } from "../../bench/baselines/random.js";
import { type Columns, scoring } from "../../bench/baselines/scoring.js";
import { trieIndex } from "../../bench/baselines/trie.js";

const words = (...hashes: bigint[]) => new Uint32Array(BigUint64Array.from(hashes).buffer);
const h = (i: number) => BigInt.asUintN(64, BigInt(i) * 0x9e3779b97f4a7c15n);

describe("the trie", () => {
  it("answers leading blocks, and forgets what it removes", () => {
    const trie = trieIndex(3, true);
    const chain = words(h(1), h(2), h(3), h(4));
    trie.store(0, chain, words(h(11), h(12), h(13), h(14)), 0, 4);
    trie.store(2, chain, words(h(21), h(22)), 0, 2);
    expect(trie.find(chain, 4)).toBe(4);
    expect([...trie.depths]).toEqual([4, 0, 2]);
    expect(trie.remove(0, words(h(12), h(99)), 0, 2)).toBe(1);
    trie.find(chain, 4);
    expect([...trie.depths]).toEqual([1, 0, 2]);
    trie.remove(0, words(h(14), h(13), h(11)), 0, 3);
    trie.remove(2, words(h(22), h(21)), 0, 2);
    expect(trie.find(chain, 4)).toBe(0);
    expect([...trie.depths]).toEqual([0, 0, 0]);
  });
});

describe("the map", () => {
  it("answers leading blocks", () => {
    const index = mapIndex(2);
    index.store(1, BigUint64Array.from([1n, 2n, 3n]), 3);
    index.store(0, BigUint64Array.from([1n, 2n]), 2);
    expect(index.find([1n, 2n, 3n, 4n])).toBe(3);
    expect([...index.depths]).toEqual([2, 3]);
    expect(index.find([9n])).toBe(0);
  });
});

describe("scoring", () => {
  // spec/scheduling.md §4.3: 160 tokens in blocks of 16, decode 10, 5 and 9, overlap 2, 5 and 8 → 18, 10 and 11.
  const columns = (prefill: number[]): Columns => ({
    prefill: Float64Array.from(prefill),
    decode: Float64Array.from([10, 5, 9]),
    device: Float64Array.from([2, 5, 8]),
    active: new Float64Array(3),
  });
  const settings = { blockSize: 16, overlapCredit: 1, prefillScale: 1 };
  const prompt = { tokens: 160, blocks: 0 };

  it("finds the vectors' lowest costs", () => {
    const idle = scoring(columns([0, 0, 0]), settings, new Random(1n));
    expect([idle.argmin(prompt), idle.cost()]).toEqual([1, 10]);
    const loaded = scoring(columns([0, 320, 0]), settings, new Random(1n));
    expect([loaded.argmin(prompt), loaded.cost()]).toEqual([2, 11]);
  });

  it("draws among equal costs", () => {
    const even: Columns = {
      prefill: new Float64Array(4),
      decode: new Float64Array(4),
      device: new Float64Array(4),
      active: new Float64Array(4),
    };
    const baseline = scoring(even, settings, new Random(0n));
    // test/golden/draws.json, seed 0, ties_of_4
    expect(Array.from({ length: 8 }, () => baseline.argmin(prompt))).toEqual([2, 2, 0, 1, 2, 3, 1, 2]);
  });

  it("samples by range-normalised softmax", () => {
    const baseline = scoring(columns([0, 0, 0]), settings, new Random(5n));
    const counts = [0, 0, 0];
    for (let i = 0; i < 20_000; i++) counts[baseline.softmax(prompt, 1)]!++;
    const weights = [18, 10, 11].map((cost) => Math.exp(-(cost - 10) / 8));
    const total = weights.reduce((a, b) => a + b);
    for (const [i, count] of counts.entries()) expect(count / 20_000).toBeCloseTo(weights[i]! / total, 1);
  });
});
