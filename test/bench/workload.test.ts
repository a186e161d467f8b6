import { describe, expect, it } from "vitest";
import { chain } from "../../bench/workload/chain.js";
import { denseSum, pairSum } from "../../bench/workload/checksum.js";
import * as workload from "../../bench/workload/sessions.js";

/** Local and sequence hashes of three blocks (spec/indexer.md §1.8–1.9). */
const vectors: [string, bigint[], bigint[]][] = [
  [
    "blocks of 4",
    [14643705804678351452n, 16777012769546811212n, 483935686894639516n],
    [14643705804678351452n, 4945711292740353085n, 12583592247330656132n],
  ],
  [
    "blocks of 16",
    [15310707395893867146n, 15292316782987903195n, 5532946206955930018n],
    [15310707395893867146n, 13769157705258532664n, 11879827756109914528n],
  ],
  [
    "blocks of 64",
    [3480597578098033343n, 3318286205056455972n, 1390211181667144747n],
    [3480597578098033343n, 2575318956255022795n, 15087857196529367026n],
  ],
];

describe("chain", () => {
  it.each(vectors)("gives the sequence hashes of %s", (_, locals, sequences) => {
    const out = new BigUint64Array(3);
    chain(new Uint32Array(BigUint64Array.from(locals).buffer), 3, new Uint32Array(out.buffer));
    expect([...out]).toEqual(sequences);
  });

  it("works in place", () => {
    const words = BigUint64Array.from(vectors[0]![1]);
    chain(new Uint32Array(words.buffer), 3, new Uint32Array(words.buffer));
    expect([...words]).toEqual(vectors[0]![2]);
  });
});

describe("the sessions", () => {
  const sessions = Array.from({ length: 2000 }, (_, i) => i);

  it("have the lengths and holders of the described workload", () => {
    const tails = sessions.map(workload.tailBlocks);
    expect(Math.min(...tails)).toBeGreaterThanOrEqual(64);
    expect(Math.max(...tails)).toBeLessThanOrEqual(943);
    expect(new Set(sessions.map(workload.rankCount))).toEqual(new Set([1, 2, 3]));
    const mean = workload.queriesOf(2000).reduce((sum, query) => sum + query.count, 0) / workload.REPEATED_QUERIES;
    expect(mean).toBeGreaterThan(630);
    expect(mean).toBeLessThan(690);
  });

  it("share their system prompt and nothing else", () => {
    const chainOf = (session: number) => {
      const words = new Uint32Array(2 * workload.LONGEST_CHAIN);
      const count = workload.writeLocals(words, session, workload.tailBlocks(session));
      return [...new BigUint64Array(words.buffer, 0, count)];
    };
    const [a, b, c] = [chainOf(3), chainOf(3 + workload.SYSTEM_PROMPTS), chainOf(4)];
    expect(a.slice(0, 128)).toEqual(b.slice(0, 128));
    expect(new Set([...a, ...b, ...c]).size).toBe(a.length + b.length + c.length - 128);
  });

  it("name a block differently on each rank", () => {
    const names = [0, 1, 63].map((rank) => {
      const words = new Uint32Array(2 * workload.LONGEST_CHAIN);
      workload.writeNames(words, 7, 100, rank);
      return [...new BigUint64Array(words.buffer, 0, 228)];
    });
    expect(new Set(names.flat()).size).toBe(3 * 228);
  });
});

describe("checksums of lookups", () => {
  it("ignore the order of pairs and ranks of depth 0", () => {
    const dense = new Uint32Array(64);
    dense[5] = 128;
    dense[60] = 3;
    expect(denseSum(9, dense)).toBe((pairSum(9, 60, 3) + pairSum(9, 5, 128)) >>> 0);
    expect(denseSum(8, dense)).not.toBe(denseSum(9, dense));
  });
});
