import { describe, expect, test } from "vitest";
import { Random } from "../../../src/core/random.js";
import { chain, type Handle, LoadPool, STATUS } from "./pool.js";

const pool = new LoadPool();
const { kernel } = pool;

/** Ranks in row order, as the kernel has them. */
function rows(): [bigint, number][] {
  return Array.from({ length: kernel.rankCount() }, (_, row) => {
    const slot = kernel.slotOf(row);
    expect(kernel.rowOf(slot)).toBe(row);
    return [BigInt.asUintN(64, kernel.rankWorkerId(slot)), kernel.rankDpRank(slot)];
  });
}

describe("rows", () => {
  test("are sorted by worker id as u64, then rank, whatever the order of arrival", () => {
    pool.reset();
    const ids: [bigint, number][] = [
      [2n ** 64n - 1n, 0],
      [1n, 8],
      [2n ** 63n, 0],
      [1n, 0],
      [9007199254740993n, 0],
      [9007199254740992n, 0],
      [2n, 0],
    ];
    for (const [slot, [id, dpRank]] of ids.entries()) expect(kernel.rankAdd(slot, id, dpRank)).toBe(STATUS.ok);
    expect(rows()).toEqual([ids[3], ids[1], ids[6], ids[5], ids[4], ids[2], ids[0]]);
  });

  test("keep loads, flags and bookings of their ranks through random adds and removals", () => {
    pool.reset();
    const random = new Random(3n);
    const ranks = new Map<number, { id: bigint; dpRank: number; blocks: number; flags: number; booking: Handle }>();
    for (let step = 0; step < 4000; step++) {
      const slot = random.below(300);
      const there = ranks.get(slot);
      if (there) {
        expect(kernel.rankRemove(slot)).toBe(STATUS.ok);
        expect(pool.free(there.booking)).toBe(STATUS.unknownBooking);
        ranks.delete(slot);
        continue;
      }
      const id = random.u64() >> BigInt(random.below(60));
      const dpRank = random.below(4);
      if ([...ranks.values()].some((r) => r.id === id && r.dpRank === dpRank)) continue;
      expect(kernel.rankAdd(slot, id, dpRank)).toBe(STATUS.ok);
      const blocks = random.below(50);
      const flags = random.below(4);
      kernel.rankFlags(slot, flags);
      ranks.set(slot, { id, dpRank, blocks, flags, booking: pool.book(slot, chain(slot, blocks), 0, slot)! });
    }
    const order = rows();
    const sorted = [...ranks.values()].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : a.dpRank - b.dpRank));
    expect(order).toEqual(sorted.map((r) => [r.id, r.dpRank]));
    for (const [slot, rank] of ranks) {
      expect(pool.load(slot)).toEqual({
        activeDecodeBlocks: rank.blocks,
        activePrefillTokens: slot,
        activeRequests: 1,
      });
      expect(kernel.rankFlagsOf(slot)).toBe(rank.flags);
      expect(pool.at("gate", slot)).toBe(rank.flags ? Infinity : 0);
      expect(pool.free(rank.booking)).toBe(STATUS.ok);
    }
    expect(kernel.runCount()).toBe(0);
  });

  test("16,384 ranks, slot 16,383 among them", () => {
    pool.reset().addRanks(16_384);
    expect(kernel.rankCount()).toBe(16_384);
    const booking = pool.book(16_383, chain(1, 10), 0, 100)!;
    expect(pool.load(16_383)).toEqual({ activeDecodeBlocks: 10, activePrefillTokens: 100, activeRequests: 1 });
    expect(pool.active(chain(1, 12), [16_382, 16_383])).toEqual([0, 10]);
    expect(kernel.rankAdd(16_384, 0n, 0)).toBe(STATUS.tooManyRanks);
    expect(pool.free(booking)).toBe(STATUS.ok);
  });

  test("padding rows are closed", () => {
    pool.reset().addRanks(5);
    kernel.rankRemove(4);
    for (const column of [3, 10]) {
      const padding = new Float64Array(kernel.memory.buffer, (kernel.columnAddress(column) >>> 0) + 32, 4);
      expect([...padding]).toEqual([Infinity, Infinity, Infinity, Infinity]);
    }
  });
});

describe("refusals", () => {
  test("a slot beyond the limit, a slot in use, a rank twice", () => {
    pool.reset({ maxRanks: 4 });
    expect(kernel.rankAdd(4, 1n, 0)).toBe(STATUS.tooManyRanks);
    expect(kernel.rankAdd(0, 1n, 0)).toBe(STATUS.ok);
    expect(kernel.rankAdd(0, 2n, 0)).toBe(STATUS.tooManyRanks);
    expect(kernel.rankAdd(1, 1n, 0)).toBe(STATUS.tooManyRanks);
    expect(kernel.rankCount()).toBe(1);
  });

  test("verbs on a slot without a rank", () => {
    pool.reset();
    for (const slot of [0, 63, 64, 2 ** 32 - 1]) {
      expect(kernel.rankRemove(slot)).toBe(STATUS.unknownRank);
      expect(kernel.rankFlags(slot, 1)).toBe(STATUS.unknownRank);
      expect(kernel.rowOf(slot) >>> 0).toBe(0xffffffff);
      expect(pool.book(slot, [1n])).toBeUndefined();
    }
  });

  test("the memory budget", () => {
    pool.reset({ budget: 1n << 20n });
    let added = 0;
    while (kernel.rankAdd(added, BigInt(added), 0) === STATUS.ok) added++;
    expect(kernel.rankAdd(added, BigInt(added), 0)).toBe(STATUS.memoryBudget);
    expect(added).toBeGreaterThan(64);
    expect(rows()).toHaveLength(added);
  });
});
