// Many ranks on a few long chains: partial lanes beyond the limit, splits, wide sets, tables that grow.
import { describe, expect, it } from "vitest";
import { IndexModel, sequenceHashes } from "../../oracle/index.js";
import { generator, KernelIndex, STATUS } from "./harness.js";

interface Crowd {
  ranks: number;
  chains: number;
  longest: number;
  operations: number;
  ownNames: boolean;
}

const crowds: Crowd[] = [false, true].flatMap((ownNames) => [
  { ranks: 12, chains: 24, longest: 95, operations: 4000, ownNames },
  { ranks: 40, chains: 12, longest: 300, operations: 4000, ownNames },
  { ranks: 700, chains: 6, longest: 60, operations: 5000, ownNames },
  { ranks: 16_384, chains: 3, longest: 40, operations: 3000, ownNames },
]);

function run({ ranks, chains: count, longest, operations, ownNames }: Crowd): void {
  const random = generator(ranks + count);
  const index = new KernelIndex({ ownNames, maxRanks: ranks, budget: 64n << 20n, longest: 512 });
  const model = new IndexModel(ownNames);
  const chains: { locals: bigint[]; chain: bigint[] }[] = [];
  for (let c = 0; c < count; c++) {
    const parent = c > 0 && random.chance(0.8) ? chains[random.below(c)]!.locals : [];
    const locals = parent.slice(0, random.below(parent.length + 1));
    const length = 5 + random.below(longest - 4);
    while (locals.length < length) locals.push(random.u64());
    chains.push({ locals, chain: sequenceHashes(locals) });
  }
  // A few stopping places, so that many lanes end together, and many that do not.
  const stops = Array.from({ length: 6 }, () => 1 + random.below(longest));
  const name = (slot: number, sequence: bigint) =>
    ownNames ? sequence : BigInt.asUintN(64, sequence * 3n + BigInt(slot % 7));
  for (let op = 0; op < operations; op++) {
    // Half of the time one of a few ranks, so that they meet again.
    const slot = random.chance(0.5) ? random.below(ranks) : (random.below(16) * 97) % ranks;
    const { locals, chain } = chains[random.below(count)]!;
    const u = random.below(100);
    if (u < 60) {
      const end = random.chance(0.5) ? stops[random.below(stops.length)]! : 1 + random.below(chain.length);
      const tier = random.chance(0.1) ? 1 + random.below(3) : 0;
      const names = chain.slice(0, end).map((s) => name(slot, s));
      expect(index.store(slot, tier, null, names, locals.slice(0, end))).toBe(STATUS.OK);
      expect(model.store(slot, tier, null, names, locals.slice(0, end))).toBe("ok");
    } else if (u < 97) {
      const from = random.below(chain.length);
      const names = chain.slice(from, from + (random.chance(0.3) ? 1 : 1 + random.below(40))).map((s) => name(slot, s));
      if (random.chance(0.5)) names.reverse();
      expect(index.remove(slot, 0, names)).toBe(model.remove(slot, 0, names));
    } else expect(index.clearRank(slot)).toBe(model.clearRank(slot));
    const asked = chains[random.below(count)]!.chain;
    const query = asked.slice(0, random.chance(0.3) ? asked.length : 1 + random.below(asked.length));
    if (random.chance(0.2)) query.push(77n);
    const expected = model.find(query);
    const found = index.find(query);
    if (found.size !== expected.size)
      throw new Error(`operation ${op}: ${found.size} ranks, the model ${expected.size}`);
    for (const [s, depth] of expected)
      if (found.get(s) !== depth) throw new Error(`operation ${op}: slot ${s} ${found.get(s)}, the model ${depth}`);
    if (op % 16 === 0) {
      const lower = model.findLower(query);
      const got = index.findLower(query);
      expect(got).toEqual(lower);
    }
    if (op % 97 === 0) index.check();
  }
  for (let tier = 0; tier < 4; tier++) expect(index.raw.indexHeld(tier)).toBe(model.held(tier));
  for (let slot = 0; slot < ranks; slot++) expect(index.clearRank(slot)).toBe(model.clearRank(slot));
  index.check();
  const { raw } = index;
  expect([raw.indexRuns(), raw.indexLanes(), raw.indexContent.value, raw.extentWords.value]).toEqual([0, 0, 0, 0]);
}

describe("many ranks", () => {
  it.each(crowds)("$ranks ranks, $chains chains of up to $longest blocks, own names: $ownNames", run);
});
