// Export and import of the index, record by record.
import { describe, expect, it } from "vitest";
import { IndexModel, sequenceHashes } from "../../oracle/index.js";
import { generator, KernelIndex, STATUS } from "../prefix/harness.js";

const LARGEST = 33_304;

/** All records of an index, one array each; `capacity` is the size of the buffer they go through. */
function exported(index: KernelIndex, capacity = 1 << 18): Uint8Array[] {
  const { raw } = index;
  const buffer = raw.take(capacity) >>> 0;
  const records: Uint8Array[] = [];
  raw.exportIndexBegin();
  for (;;) {
    const written = raw.exportIndexNext(buffer, capacity);
    expect(written).toBeGreaterThanOrEqual(0);
    if (!written) return records;
    const bytes = new Uint8Array(raw.memory.buffer, buffer, written).slice();
    for (let at = 0; at < bytes.length; ) {
      const size = new DataView(bytes.buffer).getUint32(at + 4, true);
      records.push(bytes.slice(at, at + size));
      at += size;
    }
  }
}

function importer(index: KernelIndex): (record: Uint8Array) => number {
  const buffer = index.raw.take(1 << 16) >>> 0;
  return (record) => {
    new Uint8Array(index.raw.memory.buffer).set(record, buffer);
    return index.raw.importIndexRecord(buffer, record.length);
  };
}

/** A random history on a few ranks; the chains that were used come back. */
class History {
  readonly chains: { locals: bigint[]; chain: bigint[] }[] = [];
  private readonly random: ReturnType<typeof generator>;

  constructor(
    readonly ownNames: boolean,
    seed: number,
  ) {
    this.random = generator(seed);
  }

  name(slot: number, sequence: bigint): bigint {
    return this.ownNames ? sequence : sequence ^ BigInt(slot);
  }

  /** One operation on every index, and on the model; their answers must agree. */
  step(model: IndexModel, ...indexes: KernelIndex[]): void {
    const { random } = this;
    const slot = random.below(6);
    const tier = random.chance(0.2) ? 1 + random.below(3) : 0;
    if (!this.chains.length || random.chance(0.3)) {
      const base =
        this.chains.length && random.chance(0.7) ? this.chains[random.below(this.chains.length)]!.locals : [];
      const locals = base.slice(0, random.below(base.length + 1));
      for (let i = random.below(80) + 1; i; i--) locals.push(random.u64());
      this.chains.push({ locals, chain: sequenceHashes(locals) });
    }
    const { locals, chain } = this.chains[random.below(this.chains.length)]!;
    if (random.chance(0.5)) {
      const end = 1 + random.below(chain.length);
      const names = chain.slice(0, end).map((s) => this.name(slot, s));
      expect(model.store(slot, tier, null, names, locals.slice(0, end))).toBe("ok");
      for (const index of indexes) expect(index.store(slot, tier, null, names, locals.slice(0, end))).toBe(STATUS.OK);
    } else {
      const names = chain.filter(() => random.chance(0.2)).map((s) => this.name(slot, s));
      const removed = model.remove(slot, tier, names);
      for (const index of indexes) expect(index.remove(slot, tier, names)).toBe(removed);
    }
  }

  compare(model: IndexModel, index: KernelIndex): void {
    index.check();
    for (const { chain } of this.chains) {
      expect(index.find(chain)).toEqual(model.find(chain));
      expect(index.findLower(chain)).toEqual(model.findLower(chain));
    }
  }
}

describe.each([
  { names: "foreign names", ownNames: false },
  { names: "own names", ownNames: true },
])("index records, $names", ({ ownNames }) => {
  it.each([1, 2, 3])("a new index made of them goes on like the old one (%i)", (seed) => {
    const history = new History(ownNames, seed);
    const model = new IndexModel(ownNames);
    const old = new KernelIndex({ ownNames, maxRanks: 6 });
    for (let i = 0; i < 200 + 150 * seed; i++) history.step(model, old);
    const fresh = new KernelIndex({ ownNames, maxRanks: 6 });
    const take = importer(fresh);
    for (const record of exported(old, LARGEST + 8 * seed)) expect(take(record)).toBe(STATUS.OK);
    history.compare(model, fresh);
    for (let tier = 0; tier < 4; tier++) expect(fresh.raw.indexHeld(tier)).toBe(model.held(tier));
    for (let i = 0; i < 150; i++) history.step(model, old, fresh);
    history.compare(model, old);
    history.compare(model, fresh);
    for (let slot = 0; slot < 6; slot++) expect(fresh.clearRank(slot)).toBe(old.clearRank(slot));
    fresh.check();
    expect(fresh.raw.indexRuns() + fresh.raw.indexLanes() + (fresh.raw.extentWords.value as number)).toBe(0);
  });

  it("the longest run and lane fit the stated size", () => {
    const index = new KernelIndex({ ownNames, longest: 10_000 });
    const locals = Array.from({ length: 9000 }, (_, i) => BigInt(i + 1));
    const chain = sequenceHashes(locals);
    index.store(5, 0, null, ownNames ? chain : locals, locals);
    const records = exported(index, LARGEST);
    expect(Math.max(...records.map((r) => r.length))).toBe(ownNames ? 16 + 8 * 4096 : LARGEST);
    const { raw } = index;
    raw.exportIndexBegin();
    expect(raw.exportIndexNext(raw.take(64), 64)).toBe(STATUS.MEMORY_BUDGET);
    const fresh = new KernelIndex({ ownNames, longest: 10_000 });
    const take = importer(fresh);
    for (const record of records) expect(take(record)).toBe(STATUS.OK);
    expect(fresh.find(chain)).toEqual(new Map([[5, 9000]]));
  });

  it("mutated records are refused, or accepted and survived", () => {
    const random = generator(17);
    const history = new History(ownNames, 9);
    const model = new IndexModel(ownNames);
    const old = new KernelIndex({ ownNames, maxRanks: 6 });
    for (let i = 0; i < 120; i++) history.step(model, old);
    const records = exported(old);
    let refused = 0;
    let accepted = 0;
    for (let round = 0; round < 400; round++) {
      const fresh = new KernelIndex({ ownNames, maxRanks: 6, budget: 8n << 20n });
      const take = importer(fresh);
      for (const original of records) {
        const record = original.slice();
        if (random.chance(0.2)) {
          for (let k = 1 + random.below(3); k; k--) {
            // Mostly the fields at the start, where the meaning is.
            const at = random.chance(0.6) ? random.below(Math.min(32, record.length)) : random.below(record.length);
            record[at] = random.chance(0.5) ? random.below(256) : record[at]! ^ (1 << random.below(8));
          }
        }
        const sized = random.chance(0.02) ? record.subarray(0, random.below(record.length)) : record;
        const before = [fresh.raw.indexRuns(), fresh.raw.indexLanes(), fresh.raw.indexContent.value];
        const status = take(sized);
        if (status === STATUS.OK) accepted++;
        else {
          expect(status).toBe(STATUS.BAD_RECORD);
          expect([fresh.raw.indexRuns(), fresh.raw.indexLanes(), fresh.raw.indexContent.value]).toEqual(before);
          refused++;
        }
      }
      // The model knows nothing of what the mutations meant: only that nothing breaks.
      for (let i = 0; i < 40; i++) {
        const slot = random.below(6);
        const { locals, chain } = history.chains[random.below(history.chains.length)]!;
        const names = chain.map((s) => history.name(slot, s));
        if (random.chance(0.5)) fresh.store(slot, random.below(4), null, names, locals);
        else fresh.remove(slot, random.below(4), names.slice(random.below(names.length)));
        for (const depth of fresh.find(chain).values()) expect(depth).toBeLessThanOrEqual(chain.length);
        fresh.findLower(chain);
      }
      for (let slot = 0; slot < 6; slot++) fresh.clearRank(slot);
      expect(fresh.raw.indexLanes()).toBe(0);
    }
    expect(refused).toBeGreaterThan(1000);
    expect(accepted).toBeGreaterThan(1000);
  });
});

describe("records that are not what their kind requires", () => {
  const locals = Array.from({ length: 70 }, (_, i) => BigInt(i + 1));
  const chain = sequenceHashes(locals);
  const source = () => {
    const index = new KernelIndex({ maxRanks: 6 });
    index.store(2, 0, null, locals, locals);
    index.remove(2, 0, [5n]);
    return exported(index) as [Uint8Array, Uint8Array];
  };
  const u32 = (record: Uint8Array, at: number, value: number): Uint8Array => {
    new DataView(record.buffer).setUint32(at, value, true);
    return record;
  };
  const u64 = (record: Uint8Array, at: number, value: bigint): Uint8Array => {
    new DataView(record.buffer).setBigUint64(at, value, true);
    return record;
  };

  it.each<[string, (run: Uint8Array) => Uint8Array]>([
    ["an unknown kind", (r) => u32(r, 0, 9)],
    ["another length than it says", (r) => r.subarray(0, r.length - 8)],
    ["no blocks", (r) => u32(u32(r, 8, 0), 4, 16).subarray(0, 16)],
    ["more blocks than bytes", (r) => u32(r, 8, 71)],
    ["a length that wraps", (r) => u32(r, 12, 0x2000_0000)],
    ["the same block twice", (r) => u64(r, 16 + 8 * 9, chain[3]!)],
  ])("a run with %s", (_, mutate) => {
    const index = new KernelIndex({ maxRanks: 6 });
    const [run] = source();
    expect(importer(index)(mutate(run))).toBe(STATUS.BAD_RECORD);
    expect(index.raw.indexContent.value).toBe(0);
  });

  it.each<[string, (lane: Uint8Array) => Uint8Array]>([
    ["a slot that does not exist", (r) => u32(r, 8, 6)],
    ["a tier that does not exist", (r) => u32(r, 12, 4)],
    ["an unknown run", (r) => u64(r, 16, 99n)],
    ["bits beyond the run", (r) => u64(u64(r, 24, 0xffff_ffff_ffff_ffffn), 32, 0x7fn)],
    ["fewer names than bits", (r) => u64(r, 24, 0xffff_ffff_ffff_ffffn)],
    ["nothing held", (r) => u32(u64(u64(r, 24, 0n), 32, 0n), 4, 40).subarray(0, 40)],
    ["one name twice", (r) => u64(r, 40, 8n)],
    ["no room for its bits", (r) => u32(r, 4, 32).subarray(0, 32)],
  ])("a lane with %s", (_, mutate) => {
    const index = new KernelIndex({ maxRanks: 6 });
    const take = importer(index);
    const [run, lane] = source();
    expect(take(run)).toBe(STATUS.OK);
    expect(take(mutate(lane.slice()))).toBe(STATUS.BAD_RECORD);
    expect(index.raw.indexHeld(0)).toBe(0);
    expect(take(lane)).toBe(STATUS.OK);
    expect(take(lane)).toBe(STATUS.BAD_RECORD);
    expect(take(run)).toBe(STATUS.BAD_RECORD);
    index.check();
    expect(index.find(chain)).toEqual(new Map([[2, 4]]));
  });

  it("a name that the rank has for another block already", () => {
    const index = new KernelIndex({ maxRanks: 6 });
    const take = importer(index);
    const [run, lane] = source();
    expect(take(run)).toBe(STATUS.OK);
    index.store(2, 0, null, [70n], [12345n]);
    expect(take(lane)).toBe(STATUS.BAD_RECORD);
    index.remove(2, 0, [70n]);
    expect(take(lane)).toBe(STATUS.OK);
  });

  it("a lane for which there is no room", () => {
    const index = new KernelIndex({ maxRanks: 6, budget: 700n << 10n });
    const take = importer(index);
    const [run, lane] = source();
    expect(take(run)).toBe(STATUS.OK);
    while (index.raw.take(1 << 12)) {}
    while (index.raw.take(64)) {}
    expect(take(lane)).toBe(STATUS.MEMORY_BUDGET);
    expect(index.raw.indexHeld(0)).toBe(0);
  });
});
