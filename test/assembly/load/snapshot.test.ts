import { describe, expect, test } from "vitest";
import { Random } from "../../../src/core/random.js";
import { chain, type Handle, LoadPool, STATUS } from "./pool.js";

const SLOTS = [0, 3, 70];

const started = (pool: LoadPool) => {
  pool.reset();
  for (const slot of SLOTS) pool.kernel.rankAdd(slot, BigInt(slot + 1), 0);
  return pool;
};

/** One random operation on a pool; the same random stream does the same to an equal pool. */
function step(pool: LoadPool, random: Random, live: (Handle & { slot: number })[]): void {
  const chosen = live[random.below(live.length + 1)];
  switch (random.below(5)) {
    case 0:
    case 1: {
      const slot = SLOTS[random.below(SLOTS.length)]!;
      const base = chain(1, random.below(40));
      const hashes = chain(2 + random.below(3), random.below(20), base.slice(0, random.below(base.length + 1)));
      const booked = pool.book(slot, hashes, random.below(3), random.below(1000))!;
      live.push({ ...booked, slot });
      break;
    }
    case 2:
      if (chosen) pool.outputBlock(chosen, random.below(2) ? random.double() : Number.NaN);
      break;
    case 3:
      if (chosen) pool.prefillComplete(chosen);
      break;
    default:
      if (!chosen) break;
      pool.free(chosen);
      live.splice(live.indexOf(chosen), 1);
  }
}

const loads = (pool: LoadPool) => SLOTS.map((slot) => pool.load(slot));

const original = new LoadPool();
const restored = new LoadPool();

describe("round trip", () => {
  test.each([1n, 2n, 3n, 4n, 5n])("a restored pool goes on as the original does, seed %d", (seed) => {
    const random = new Random(seed);
    const live: (Handle & { slot: number })[] = [];
    started(original).kernel.randomSeed(seed);
    for (let i = 100 + random.below(600); i > 0; i--) step(original, random, live);
    original.kernel.randomNext();
    const records = original.exportLoad();
    started(restored);
    for (const record of records) expect(restored.importRecord(record)).toBe(STATUS.ok);
    expect(restored.exportLoad().map(String).sort()).toEqual(records.map(String).sort());
    expect(restored.kernel.randomNext()).toBe(original.kernel.randomNext());
    const again = [...live];
    const both = [new Random(seed + 100n), new Random(seed + 100n)] as const;
    for (let i = 0; i < 500; i++) {
      step(original, both[0], live);
      step(restored, both[1], again);
      expect(loads(restored)).toEqual(loads(original));
      if (i % 25) continue;
      const asked = chain(2, 10, chain(1, i % 40));
      expect(restored.active(asked, SLOTS)).toEqual(original.active(asked, SLOTS));
    }
    for (const handle of live) original.free(handle);
    for (const handle of again) restored.free(handle);
    expect(loads(restored)).toEqual(
      SLOTS.map(() => ({ activeDecodeBlocks: 0, activePrefillTokens: 0, activeRequests: 0 })),
    );
    expect([restored.kernel.runCount(), restored.kernel.extentWords.value]).toEqual([0, 0]);
  });

  test("handles of the past stay dead, handles of the present good", () => {
    started(original);
    const dead = original.book(0, chain(1, 3))!;
    const kept = original.book(3, chain(1, 5), 0, 9)!;
    original.free(dead);
    const records = original.exportLoad(false);
    expect(records).toHaveLength(3); // ids, booking, free id
    started(restored);
    for (const record of records) expect(restored.importRecord(record)).toBe(STATUS.ok);
    expect(restored.free(dead)).toBe(STATUS.unknownBooking);
    const fresh = restored.book(0, chain(1, 3))!;
    expect(fresh.id).toBe(dead.id);
    expect(restored.free(dead)).toBe(STATUS.unknownBooking);
    expect(restored.free(kept)).toBe(STATUS.ok);
    expect(restored.free(fresh)).toBe(STATUS.ok);
  });
});

describe("records that are not right", () => {
  /** A small load with shared, decayed, free and private parts. */
  function records(seed: bigint): Uint8Array[] {
    const random = new Random(seed);
    const live: (Handle & { slot: number })[] = [];
    started(original);
    for (let i = 0; i < 40; i++) step(original, random, live);
    return original.exportLoad();
  }

  test("a rank that is not there, an id that is not expected, a length that does not fit", () => {
    started(original);
    original.book(3, chain(1, 5));
    const [ids, booking] = original.exportLoad(false) as [Uint8Array, Uint8Array];
    const refused = (change: (view: DataView) => void, bytes = booking) => {
      const copy = bytes.slice();
      change(new DataView(copy.buffer));
      started(restored);
      expect(restored.importRecord(ids)).toBe(STATUS.ok);
      expect(restored.importRecord(copy)).toBe(STATUS.badRecord);
      expect(restored.load(3)).toEqual({ activeDecodeBlocks: 0, activePrefillTokens: 0, activeRequests: 0 });
    };
    refused((v) => v.setUint32(0, 9, true));
    refused((v) => v.setUint32(4, 8, true));
    refused((v) => v.setUint32(8, 2, true));
    refused((v) => v.setUint32(16, 4, true));
    refused((v) => v.setUint32(16, 0xffffffff, true));
    refused((v) => v.setUint32(20, 0xffffffff, true));
    refused((v) => v.setBigInt64(24, 1n, true));
    refused((v) => v.setFloat64(32, Number.NaN, true));
    refused((v) => v.setFloat64(32, 0.5, true));
    refused((v) => v.setFloat64(32, -1, true));
    refused((v) => v.setFloat64(48, Number.NaN, true));
    refused((v) => v.setFloat64(48, -2, true));
    refused((v) => v.setFloat64(56, Number.POSITIVE_INFINITY, true));
    refused((v) => v.setUint32(40, 6, true));
    refused((v) => v.setUint32(44, 0x10000000, true));
    refused(() => {}, booking.slice(0, 16));
    refused(() => {}, ids);
  });

  test("5,000 mutated loads are refused, or accepted and then live on", () => {
    const random = new Random(77n);
    const sources = Array.from({ length: 20 }, (_, i) => records(BigInt(i)));
    let accepted = 0;
    for (let round = 0; round < 5000; round++) {
      const source = sources[random.below(sources.length)]!.map((record) => record.slice());
      for (let flips = 1 + random.below(3); flips > 0; flips--) {
        const victim = random.below(source.length);
        const bytes = source[victim]!;
        const change = random.below(12);
        if (change === 0) source[victim] = bytes.slice(0, 8 * random.below(bytes.length / 8 + 1));
        else if (change === 1) source.splice(victim, 1);
        else bytes[random.below(bytes.length)] = change === 2 ? 255 : random.below(256);
        if (!source.length) source.push(bytes);
      }
      started(restored);
      const statuses = source.map((record) => restored.importRecord(record));
      for (const status of statuses) expect([STATUS.ok, STATUS.badRecord, STATUS.memoryBudget]).toContain(status);
      if (statuses.every((status) => status === STATUS.ok)) accepted++;
      const live: (Handle & { slot: number })[] = [];
      for (let i = 0; i < 20; i++) step(restored, random, live);
      restored.active(chain(1, 30), SLOTS);
      for (const slot of SLOTS) {
        restored.kernel.rankRemove(slot);
        restored.kernel.rankAdd(slot, BigInt(slot + 1), 0);
      }
      expect([restored.kernel.bookingCount(), restored.kernel.runCount(), restored.kernel.extentWords.value]).toEqual([
        0, 0, 0,
      ]);
    }
    console.log(`mutated loads accepted: ${accepted} of 5,000`);
    expect(accepted).toBeGreaterThan(0);
    expect(accepted).toBeLessThan(5000);
  });
});

test("memory that runs out while a load is restored", () => {
  started(original);
  for (let i = 0; i < 200; i++) original.outputBlock(original.book(SLOTS[i % 3]!, chain(i, 300))!, 0.5);
  const records = original.exportLoad();
  restored.reset({ budget: 1n << 20n }).addRanks(71);
  const statuses = records.map((record) => restored.importRecord(record));
  expect(statuses).toContain(STATUS.memoryBudget);
  const held = SLOTS.reduce((blocks, slot) => blocks + restored.load(slot).activeDecodeBlocks, 0);
  expect(held).toBeLessThan(200 * 150);
  for (let slot = 0; slot < 71; slot++) restored.kernel.rankRemove(slot);
  expect([restored.kernel.runCount(), restored.kernel.extentWords.value]).toEqual([0, 0]);
});
