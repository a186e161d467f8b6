// Budgets, sizes and places at their limits.
import { describe, expect, it } from "vitest";
import { IndexModel, sequenceHashes } from "../../oracle/index.js";
import { generator, KernelIndex, STATUS } from "./harness.js";

const distinct = (from: number, n: number): bigint[] => Array.from({ length: n }, (_, i) => BigInt(from + i) << 20n);

describe.each([false, true])("the memory budget, own names: %s", (ownNames) => {
  it("refuses a store whole, and stores work again after removals", () => {
    const budget = (ownNames ? 2n : 3n) << 20n;
    const random = generator(5);
    const index = new KernelIndex({ ownNames, maxRanks: 8, budget, longest: 2048 });
    const model = new IndexModel(ownNames);
    const sessions: { slot: number; names: bigint[]; locals: bigint[]; chain: bigint[] }[] = [];
    let refused = 0;
    let acceptedAfter = 0;
    for (let op = 0; op < 6000; op++) {
      if (random.chance(0.62) || !sessions.length) {
        const slot = random.below(8);
        // Now and then a store that could never fit, or one that goes on from an older session.
        const old = sessions.length && random.chance(0.3) ? sessions[random.below(sessions.length)]! : undefined;
        const tail = Array.from({ length: 1 + random.below(random.chance(0.05) ? 1500 : 60) }, () => random.u64());
        const locals =
          old && old.slot === slot ? [...old.locals.slice(0, 1 + random.below(old.locals.length)), ...tail] : tail;
        if (locals.length > 2000) continue;
        const chain = sequenceHashes(locals);
        const names = chain.map((s) => (ownNames ? s : s ^ BigInt(slot + 1)));
        const status = index.store(slot, 0, null, names, locals);
        if (status === STATUS.OK) {
          model.store(slot, 0, null, names, locals);
          sessions.push({ slot, names, locals, chain });
          if (refused) acceptedAfter++;
        } else {
          expect(status).toBe(STATUS.MEMORY_BUDGET);
          refused++;
        }
      } else {
        const session = sessions.splice(random.below(sessions.length), 1)[0]!;
        const some = random.chance(0.5) ? session.names : session.names.filter(() => random.chance(0.5));
        expect(index.remove(session.slot, 0, some)).toBe(model.remove(session.slot, 0, some));
      }
      if (op % 50 === 0) {
        index.check();
        expect(index.raw.indexHeld(0)).toBe(model.held(0));
        for (let i = 0; i < 5 && sessions.length; i++) {
          const { chain } = sessions[random.below(sessions.length)]!;
          expect(index.find(chain)).toEqual(model.find(chain));
        }
      }
      if (op === 5500) sessions.length = Math.min(sessions.length, 50);
    }
    expect(refused).toBeGreaterThan(50);
    expect(acceptedAfter).toBeGreaterThan(50);
    expect(index.raw.arenaInUse()).toBeLessThanOrEqual(budget);
    for (let slot = 0; slot < 8; slot++) index.clearRank(slot);
    index.check();
    expect(index.raw.indexRuns() + index.raw.indexLanes()).toBe(0);
  });

  it("fits a good share of the budget", () => {
    const index = new KernelIndex({ ownNames, maxRanks: 8, budget: 16n << 20n });
    let blocks = 0;
    for (let s = 0; ; s++) {
      const locals = distinct(s * 1000 + 1, 500);
      const chain = sequenceHashes(locals);
      if (index.store(s % 8, 0, null, ownNames ? chain : distinct(s * 1000 + 7, 500), locals) !== STATUS.OK) break;
      blocks += 500;
    }
    index.check();
    expect(blocks * (ownNames ? 20 : 30)).toBeGreaterThan(16 << 20);
  });
});

describe("sizes", () => {
  it("slot 16,383 works alone and among many", () => {
    const index = new KernelIndex({ maxRanks: 16_384 });
    const locals = distinct(1, 20);
    const chain = sequenceHashes(locals);
    expect(index.store(16_383, 0, null, distinct(500, 20), locals)).toBe(STATUS.OK);
    expect(index.find(chain)).toEqual(new Map([[16_383, 20]]));
    for (let slot = 0; slot < 16_383; slot += 31) index.store(slot, 0, null, distinct(500, 20 - (slot % 3)), locals);
    index.check();
    const found = index.find(chain);
    expect(found.size).toBe(1 + Math.ceil(16_383 / 31));
    for (const [slot, depth] of found) expect(depth).toBe(slot === 16_383 ? 20 : 20 - (slot % 3));
    expect(index.store(16_384, 0, null, [1n], [1n])).toBeLessThan(0);
  });

  it("a chain of a million blocks is stored, asked, removed and dropped", () => {
    const index = new KernelIndex({ budget: 512n << 20n, longest: 1 });
    const { raw } = index;
    const n = 1_000_000;
    const names = raw.take(n * 8) >>> 0;
    const locals = raw.take(n * 8) >>> 0;
    const fill = (address: number, salt: bigint): void => {
      const view = new BigUint64Array(raw.memory.buffer, address, n);
      for (let i = 0; i < n; i++) view[i] = BigInt.asUintN(64, (BigInt(i) + 1n) * 0x9e3779b97f4a7c15n + salt);
    };
    fill(names, 0n);
    fill(locals, 1n);
    expect(raw.indexStore(3, 0, 0, 0n, n, names, locals)).toBe(STATUS.OK);
    expect(raw.indexBlocksOf(3)).toBe(n);
    expect(raw.indexFind(locals, n)).toBe(n);
    index.check();
    const before = raw.indexRemove(3, 0, names + 8 * 500_000, 1);
    expect(before).toBe(1);
    expect(raw.indexFind(locals, n)).toBe(500_000);
    expect(raw.indexRemove(3, 0, names, n)).toBe(n - 1);
    expect(raw.indexRuns()).toBe(0);
    fill(locals, 1n);
    expect(raw.indexStore(3, 0, 0, 0n, n, names, locals)).toBe(STATUS.OK);
    expect(raw.indexClearRank(3)).toBe(n);
    expect([raw.indexRuns(), raw.indexLanes(), raw.extentWords.value]).toEqual([0, 0, 0]);
  });

  it("memory is back after many random branches come and go (dynamo#10774)", () => {
    const random = generator(11);
    const index = new KernelIndex({ longest: 64 });
    const base = Array.from({ length: 40 }, () => random.u64());
    const baseNames = base.map((x) => x ^ 1n);
    index.store(0, 0, null, baseNames, base);
    let settled = 0n;
    for (let i = 0; i < 30_000; i++) {
      const at = random.below(40);
      const tail = Array.from({ length: 1 + random.below(20) }, () => random.u64());
      const names = tail.map((x) => x ^ 1n);
      if (index.store(0, 0, baseNames[at]!, names, tail) !== STATUS.OK) throw new Error("refused");
      if (index.remove(0, 0, names) !== names.length) throw new Error("not removed");
      if (i === 3000) settled = index.raw.arenaInUse();
    }
    index.check();
    expect(index.raw.arenaInUse()).toBe(settled);
    expect([index.raw.indexRuns(), index.raw.indexLanes(), index.raw.indexContent.value]).toEqual([1, 1, 40]);
  });

  it("works above 2 GiB", () => {
    const index = new KernelIndex({ from: 0x8000_0000 - 65_536, budget: 64n << 20n, longest: 1024 });
    const random = generator(3);
    const chains: bigint[][] = [];
    for (let s = 0; s < 200; s++) {
      const locals = Array.from({ length: 200 }, () => random.u64());
      chains.push(sequenceHashes(locals));
      expect(
        index.store(
          s % 64,
          0,
          null,
          locals.map((x) => x ^ 5n),
          locals,
        ),
      ).toBe(STATUS.OK);
    }
    index.check();
    chains.forEach((chain, s) => {
      expect(index.find(chain)).toEqual(new Map([[s % 64, 200]]));
    });
    expect(index.raw.indexOut.value >>> 0).toBeGreaterThan(0x7fff_0000);
    for (let slot = 0; slot < 64; slot++) index.clearRank(slot);
    index.check();
  });
});
