// The scenarios of spec/indexer.md §2.4 and §6, and cases C01 and C15. Blocks are local hashes; a
// block is named by its own number unless said otherwise.
import { describe, expect, it } from "vitest";
import { sequenceHashes } from "../../oracle/index.js";
import { KernelIndex, STATUS } from "./harness.js";

const big = (list: number[]): bigint[] => list.map(BigInt);
const chain = (...blocks: number[]): bigint[] => sequenceHashes(big(blocks));

/** Stores blocks that are named by their own numbers, or by `names`. */
function put(index: KernelIndex, parent: number | null, blocks: number[], slot = 0, names = blocks, tier = 0): number {
  return index.store(slot, tier, parent === null ? null : BigInt(parent), big(names), big(blocks));
}

function score(index: KernelIndex, blocks: number[], slot = 0): number {
  index.check();
  return index.find(chain(...blocks)).get(slot) ?? 0;
}

describe("holes", () => {
  it("a removed middle block ends the prefix, a refill restores it at once", () => {
    const index = new KernelIndex();
    put(index, null, [1, 2, 3, 4]);
    index.remove(0, 0, [2n]);
    expect(score(index, [1, 2, 3, 4])).toBe(1);
    expect(put(index, 1, [2])).toBe(STATUS.OK);
    expect(score(index, [1, 2, 3, 4])).toBe(4);
    put(index, 2, [3, 4]);
    expect(score(index, [1, 2, 3, 4])).toBe(4);
  });

  it("a store behind a hole neither crashes nor raises the score", () => {
    const index = new KernelIndex();
    put(index, null, [1, 2, 3, 4]);
    index.remove(0, 0, [2n]);
    put(index, 4, [5]);
    expect(score(index, [1, 2, 3, 4, 5])).toBe(1);
  });

  it("branches keep their score when a sibling goes; removing the root block ends all", () => {
    const index = new KernelIndex();
    put(index, null, [1, 2, 3]);
    put(index, 2, [13]);
    index.remove(0, 0, [3n]);
    expect(score(index, [1, 2, 13])).toBe(3);
    index.remove(0, 0, [1n]);
    for (const query of [[1], [1, 2], [1, 2, 3], [1, 2, 13]]) expect(score(index, query)).toBe(0);
  });
});

describe("names", () => {
  it("ranks that name the same blocks differently do not disturb each other", () => {
    const index = new KernelIndex();
    put(index, null, [1, 2, 3], 0, [101, 102, 103]);
    put(index, null, [1, 2, 3], 1, [201, 202, 203]);
    expect(index.remove(0, 0, [202n])).toBe(0);
    index.remove(0, 0, [102n]);
    expect(score(index, [1, 2, 3], 0)).toBe(1);
    expect(score(index, [1, 2, 3], 1)).toBe(3);
  });

  it("storing a held chain again changes nothing and is counted", () => {
    const index = new KernelIndex();
    put(index, null, [1, 2]);
    put(index, null, [1, 2]);
    expect(index.raw.indexBlocksOf(0)).toBe(2);
    expect(index.raw.indexHeld(0)).toBe(2);
    expect(index.raw.indexDuplicates.value).toBe(2n);
    expect(score(index, [1, 2])).toBe(2);
  });

  it("a block stored again under another name answers to that name only", () => {
    const index = new KernelIndex();
    put(index, null, [1, 2], 0, [11, 12]);
    put(index, null, [1, 2], 0, [11, 22]);
    expect(index.remove(0, 0, [12n])).toBe(0);
    expect(score(index, [1, 2])).toBe(2);
    expect(index.remove(0, 0, [22n])).toBe(1);
    expect(score(index, [1, 2])).toBe(1);
  });

  it("a name given to another block leaves the first", () => {
    const index = new KernelIndex();
    put(index, null, [1, 2, 3]);
    put(index, null, [9], 0, [2]);
    expect(score(index, [1, 2, 3])).toBe(1);
    expect(score(index, [9])).toBe(1);
    index.remove(0, 0, [2n]);
    expect(score(index, [9])).toBe(0);
  });

  it("unknown names are counted and the rest of the batch is processed", () => {
    const index = new KernelIndex();
    put(index, null, [1, 2]);
    expect(index.remove(0, 0, [77n, 2n, 2n])).toBe(1);
    expect(index.raw.indexUnknownRemoves.value).toBe(2n);
    expect(score(index, [1, 2])).toBe(1);
    expect(index.remove(5, 0, [1n])).toBe(0);
    expect(score(index, [1, 2])).toBe(1);
  });

  it.each([
    ["twice in one store", null, [5, 6, 5]],
    ["like its parent", 1, [1]],
    ["like its parent, later", 1, [7, 1]],
  ])("a block named %s is refused whole", (_, parent, names) => {
    const index = new KernelIndex();
    put(index, null, [1]);
    const blocks = names.map((_name, i) => 40 + i);
    expect(put(index, parent, blocks, 0, names)).toBe(STATUS.INVALID_SEQUENCE);
    expect(index.raw.indexHeld(0)).toBe(1);
    expect(index.raw.indexContent.value).toBe(1);
    index.check();
  });

  it("finds a name that comes twice in a store of any length", () => {
    for (const n of [9, 100, 3000]) {
      const index = new KernelIndex();
      const blocks = Array.from({ length: n }, (_, i) => i + 1);
      const names = [...blocks];
      names[n - 1] = names[n >> 1]!;
      expect(put(index, null, blocks, 0, names)).toBe(STATUS.INVALID_SEQUENCE);
      expect(index.raw.indexHeld(0)).toBe(0);
      expect(put(index, null, blocks)).toBe(STATUS.OK);
    }
  });

  it("a pool of own names refuses any other name", () => {
    const index = new KernelIndex({ ownNames: true });
    const locals = big([1, 2]);
    const own = sequenceHashes(locals);
    expect(index.store(0, 0, null, [own[0]!, 99n], locals)).toBe(STATUS.FOREIGN_NAME);
    expect(index.raw.indexContent.value).toBe(0);
    expect(index.store(0, 0, null, own, locals)).toBe(STATUS.OK);
    expect(index.store(0, 0, own[1]!, chain(1, 2, 3).slice(2), big([3]))).toBe(STATUS.OK);
    expect(score(index, [1, 2, 3])).toBe(3);
    expect(index.storeSequence(1, 0, own)).toBe(STATUS.OK);
    expect(score(index, [1, 2, 3], 1)).toBe(2);
  });

  it("0 is a local hash, a sequence hash and a name like any other", () => {
    const index = new KernelIndex();
    expect(put(index, null, [0, 0, 0], 0, [7, 0, 8])).toBe(STATUS.OK);
    expect(put(index, 0, [5], 0, [9])).toBe(STATUS.OK);
    expect(score(index, [0, 0, 0])).toBe(3);
    expect(score(index, [0, 0, 5])).toBe(3);
    expect(index.remove(0, 0, [0n])).toBe(1);
    expect(score(index, [0, 0, 0])).toBe(1);
    const own = new KernelIndex({ ownNames: true });
    expect(own.store(0, 0, null, chain(0, 0), big([0, 0]))).toBe(STATUS.OK);
    expect(own.store(0, 0, 0n, [chain(0, 4)[1]!], [4n])).toBe(STATUS.OK);
    expect(score(own, [0, 4])).toBe(2);
    expect(own.remove(0, 0, [0n])).toBe(1);
    expect(score(own, [0, 4])).toBe(0);
  });
});

describe("parents", () => {
  it("a child before its parent is refused and does not come back", () => {
    const index = new KernelIndex();
    expect(put(index, 1, [2])).toBe(STATUS.ORPHAN);
    put(index, null, [1]);
    expect(score(index, [1, 2])).toBe(1);
    expect(put(index, 1, [2])).toBe(STATUS.OK);
    expect(score(index, [1, 2])).toBe(2);
  });

  it("another rank's parent is unknown", () => {
    const index = new KernelIndex();
    put(index, null, [1], 1);
    expect(put(index, 1, [2], 0)).toBe(STATUS.ORPHAN);
  });

  it("a parent in any tier of the rank is known", () => {
    const index = new KernelIndex();
    put(index, null, [1, 2]);
    expect(put(index, 2, [3], 0, [3], 1)).toBe(STATUS.OK);
    expect(put(index, 3, [4], 0, [4], 2)).toBe(STATUS.OK);
    expect(put(index, 4, [5], 0, [5], 0)).toBe(STATUS.OK);
    expect(put(index, 9, [6], 0, [6], 1)).toBe(STATUS.ORPHAN);
    expect(score(index, [1, 2, 3, 4, 5])).toBe(2);
    expect(index.findLower(chain(1, 2, 3, 4, 5))).toEqual(new Map([[0, { host: 1, disk: 1 }]]));
    // The name stays known while any tier holds the block.
    put(index, 2, [3]);
    index.remove(0, 1, [3n]);
    expect(put(index, 3, [30])).toBe(STATUS.OK);
    index.remove(0, 0, [3n]);
    expect(put(index, 3, [31])).toBe(STATUS.ORPHAN);
  });

  it("engines that announce only the new blocks are followed (vllm-ascend#12002)", () => {
    const index = new KernelIndex();
    put(index, null, [1, 2]);
    put(index, 2, [3]);
    expect(score(index, [1, 2, 3])).toBe(3);
  });
});

describe("tiers", () => {
  it("are exclusive: host begins where the device ends, disk where the host ends", () => {
    const index = new KernelIndex();
    put(index, null, [1, 2, 3]);
    put(index, null, [1, 2, 3, 4, 5], 0, [1, 2, 3, 4, 5], 1);
    put(index, null, [1, 2, 3, 4, 5, 6, 7], 0, [1, 2, 3, 4, 5, 6, 7], 2);
    put(index, 7, [8], 0, [8], 3);
    put(index, null, [1, 2], 4, [1, 2], 1);
    expect(score(index, [1, 2, 3, 4, 5, 6, 7, 8, 9])).toBe(3);
    expect(index.findLower(chain(1, 2, 3, 4, 5, 6, 7, 8, 9))).toEqual(
      new Map([
        [0, { host: 2, disk: 3 }],
        [4, { host: 2, disk: 0 }],
      ]),
    );
    // The same name in two tiers is two holdings.
    expect(index.remove(0, 2, [7n])).toBe(1);
    expect(index.remove(0, 1, [7n])).toBe(0);
    expect(index.findLower(chain(1, 2, 3, 4, 5, 6, 7, 8)).get(0)).toEqual({ host: 2, disk: 1 });
    expect([0, 1, 2, 3].map((t) => index.raw.indexHeld(t))).toEqual([3, 7, 6, 1]);
    expect(index.clearRank(0)).toBe(15);
    index.check();
  });
});

describe("over-counts that others shipped", () => {
  it("R1", () => {
    const index = new KernelIndex();
    put(index, null, [1, 2, 3], 0, [11, 12, 13]);
    put(index, 11, [4], 0, [14]);
    index.remove(0, 0, [11n]);
    put(index, null, [1, 2], 0, [11, 12]);
    index.remove(0, 0, [13n, 12n]);
    expect(score(index, [1, 2])).toBe(1);
  });

  it("R2", () => {
    const index = new KernelIndex();
    put(index, null, [1, 30], 0, [11, 130]);
    put(index, 11, [2, 20, 21], 0, [12, 120, 121]);
    index.remove(0, 0, [11n]);
    put(index, null, [1], 0, [11]);
    put(index, 11, [2, 20], 0, [12, 120]);
    index.remove(0, 0, [121n, 120n]);
    expect(score(index, [1, 2, 20])).toBe(2);
  });

  it("equal set sizes are not equal sets", () => {
    const index = new KernelIndex();
    put(index, null, [1, 2], 0);
    put(index, null, [1], 1);
    put(index, null, [1, 2], 2);
    index.remove(2, 0, [1n]);
    expect(index.find(chain(1, 2))).toEqual(
      new Map([
        [0, 2],
        [1, 1],
      ]),
    );
  });
});

describe("cases", () => {
  it("C01: a block seen anywhere is not a prefix", () => {
    const index = new KernelIndex();
    put(index, null, [1], 1);
    put(index, null, [2], 2);
    expect(index.find(chain(2, 1))).toEqual(new Map([[2, 1]]));
  });

  it("C15: removing a rank leaves the others, and it comes back empty", () => {
    const index = new KernelIndex();
    put(index, null, [1, 2], 1);
    put(index, null, [1, 2, 3], 2);
    expect(index.clearRank(1)).toBe(2);
    expect(index.find(chain(1, 2, 3))).toEqual(new Map([[2, 3]]));
    expect(put(index, 2, [3], 1)).toBe(STATUS.ORPHAN);
    put(index, null, [1], 1);
    expect(index.find(chain(1, 2, 3))).toEqual(
      new Map([
        [1, 1],
        [2, 3],
      ]),
    );
    expect(index.clearRank(9)).toBe(0);
  });
});

describe("shapes of a stream", () => {
  it("one block at a time, many sessions interleaved, is as good as whole stores", () => {
    const grown = new KernelIndex();
    const whole = new KernelIndex();
    const sessions = Array.from({ length: 40 }, (_, s) => Array.from({ length: 90 }, (_, i) => s * 1000 + i + 1));
    for (let i = 0; i < 90; i++)
      sessions.forEach((blocks, s) => {
        put(grown, i ? blocks[i - 1]! : null, [blocks[i]!], s % 8);
      });
    sessions.forEach((blocks, s) => {
      put(whole, null, blocks, s % 8);
    });
    sessions.forEach((blocks, s) => {
      expect(score(grown, blocks, s % 8)).toBe(90);
    });
    expect(grown.raw.indexRuns()).toBe(whole.raw.indexRuns());
    expect(grown.raw.indexLanes()).toBe(whole.raw.indexLanes());
  });

  it("a store of nothing is fine, a query of nothing finds nothing", () => {
    const index = new KernelIndex();
    expect(put(index, null, [])).toBe(STATUS.OK);
    expect(put(index, 1, [])).toBe(STATUS.ORPHAN);
    expect(index.find([]).size).toBe(0);
    index.check();
  });

  it("refuses slots and tiers that do not exist", () => {
    const index = new KernelIndex({ maxRanks: 4 });
    expect(put(index, null, [1], 4)).toBeLessThan(0);
    expect(put(index, null, [1], 0, [1], 4)).toBeLessThan(0);
    expect(index.remove(4, 0, [1n])).toBe(0);
    expect(index.clearRank(4)).toBe(0);
    expect(index.raw.indexContent.value).toBe(0);
  });
});
