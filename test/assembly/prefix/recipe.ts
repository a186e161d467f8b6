// The differential recipe of spec/indexer.md §2.4: a pool of related prompts, a mix of operations
// as engines emit them, and after each operation every live sequence asked and compared with the
// exact model. Lower tiers, renamed blocks and re-used names are added to it.
import { IndexModel, type StoreAnswer, sequenceHashes } from "../../oracle/index.js";
import { generator, STATUS } from "./harness.js";

/** What the recipe drives: the kernel's index, or one that is wrong on purpose. */
export interface Subject {
  store(slot: number, tier: number, parent: bigint | null, names: readonly bigint[], locals: readonly bigint[]): number;
  remove(slot: number, tier: number, names: readonly bigint[]): number;
  clearRank(slot: number): number;
  find(chain: readonly bigint[]): Map<number, number>;
  findLower(chain: readonly bigint[]): Map<number, { host: number; disk: number }>;
  check(): void;
}

interface Sequence {
  locals: bigint[];
  chain: bigint[];
}

const ANSWERS: Record<StoreAnswer, number> = {
  ok: STATUS.OK,
  orphan: STATUS.ORPHAN,
  invalid: STATUS.INVALID_SEQUENCE,
  foreign_name: STATUS.FOREIGN_NAME,
};

/** Three system prompts × four documents × three turns. */
function pool(random: ReturnType<typeof generator>): Sequence[] {
  const blocks = (n: number): bigint[] =>
    Array.from({ length: n }, () => (random.chance(0.02) ? 0n : BigInt(random.below(50))));
  const out: Sequence[] = [];
  for (let s = 0; s < 3; s++) {
    const system = blocks(1 + random.below(3));
    for (let d = 0; d < 4; d++) {
      const document = blocks(d === 3 ? random.below(25) : random.below(7));
      let locals = [...system, ...document];
      for (let t = 0; t < 3; t++) {
        locals = [...locals, ...blocks(1 + random.below(3))];
        out.push({ locals, chain: sequenceHashes(locals) });
      }
    }
  }
  return out;
}

export const SEEDS = 40;
export const OPERATIONS = 2000;

/** Two to four workers with one or two ranks each, as slots. */
export function slotsOf(seed: number): number[] {
  const workers = 2 + (seed % 3);
  const ranks = 1 + (seed % 2);
  return Array.from({ length: workers }, (_, w) => Array.from({ length: ranks }, (_, r) => w * 2 + r)).flat();
}

export interface RecipeOptions {
  seed: number;
  operations: number;
  ownNames: boolean;
  slots: readonly number[];
}

/** Runs the recipe; throws at the first difference. Answers how many queries were compared. */
export function runRecipe(subject: Subject, { seed, operations, ownNames, slots }: RecipeOptions): number {
  const random = generator(seed);
  const model = new IndexModel(ownNames);
  const sequences = pool(random);
  const live = new Set<number>();
  const stale: bigint[] = [];
  let fresh = 0n;
  let queries = 0;

  const pick = <T>(list: readonly T[]): T => list[random.below(list.length)] as T;
  const tier = () => (random.chance(0.2) ? 1 + random.below(3) : 0);
  const heldPrefix = (slot: number, t: number, chain: readonly bigint[]): number => {
    let i = 0;
    while (i < chain.length && model.nameOf(slot, t, chain[i] as bigint) !== undefined) i++;
    return i;
  };
  const nameFor = (slot: number, t: number, sequence: bigint): bigint => {
    if (ownNames) return sequence;
    const known = model.nameOf(slot, t, sequence);
    if (known !== undefined && !random.chance(0.03)) return known;
    if (stale.length && random.chance(0.1)) return pick(stale);
    // Names are often the same on several ranks, and 0 is one.
    if (random.chance(0.3)) return sequence;
    return random.chance(0.02) ? 0n : ++fresh;
  };

  const store = (slot: number, t: number, index: number, from: number, count: number): void => {
    const { locals, chain } = sequences[index] as Sequence;
    let parent: bigint | null = null;
    if (from > 0) {
      const before = chain[from - 1] as bigint;
      const tiers = [t, 0, 1, 2, 3];
      const named = tiers.map((x) => model.nameOf(slot, x, before)).find((name) => name !== undefined);
      parent = named ?? (stale.length && random.chance(0.5) ? pick(stale) : before);
    }
    const wanted = chain.slice(from, from + count);
    const names = wanted.map((sequence) => nameFor(slot, t, sequence));
    const expected = model.store(slot, t, parent, names, locals.slice(from, from + count));
    const got = subject.store(slot, t, parent, names, locals.slice(from, from + count));
    if (got !== ANSWERS[expected]) throw new Error(`store answered ${got}, the model ${expected}`);
    live.add(index);
  };
  const remove = (slot: number, t: number, names: bigint[]): void => {
    const expected = model.remove(slot, t, names);
    const got = subject.remove(slot, t, names);
    if (got !== expected) throw new Error(`remove answered ${got}, the model ${expected}`);
    stale.push(...names);
    while (stale.length > 60) stale.shift();
  };
  const removal = (slot: number, t: number, chain: readonly bigint[]): bigint[] => {
    const held = chain.map((s) => model.nameOf(slot, t, s)).filter((name) => name !== undefined);
    if (!held.length) return [];
    const u = random.below(100);
    if (u < 35) return held.slice(-1 - random.below(4));
    if (u < 50) return held.slice(0, 1 + random.below(4));
    if (u < 70) return [pick(held)];
    const some = new Set(Array.from({ length: 1 + random.below(5) }, () => pick(held)));
    return [...some];
  };
  const step = (): string => {
    const slot = pick(slots);
    const t = tier();
    const index = live.size && random.chance(0.5) ? pick([...live]) : random.below(sequences.length);
    const { locals, chain } = sequences[index] as Sequence;
    const u = random.below(100);
    if (u < 40) {
      const from = heldPrefix(slot, t, chain);
      if (from === chain.length) {
        if (random.chance(0.25)) store(slot, t, index, 0, chain.length);
        return "duplicate";
      }
      const beyond = chain.slice(from + 1).some((s) => model.nameOf(slot, t, s) !== undefined);
      if (beyond && random.chance(0.4)) store(slot, t, index, from, 1);
      else if (random.chance(0.3) && chain.length - from > 1) {
        const first = 1 + random.below(chain.length - from - 1);
        store(slot, t, index, from, first);
        store(slot, t, index, from + first, chain.length - from - first);
      } else if (random.chance(0.1)) store(slot, t, index, random.below(chain.length), 1 + random.below(4));
      else store(slot, t, index, random.chance(0.2) ? 0 : from, chain.length);
      return "store";
    }
    if (u < 52) {
      // A decode extension: two of three variants are shared between ranks.
      const variant = random.below(3);
      const more = Array.from({ length: 1 + random.below(3) }, (_, i) =>
        BigInt(1000 + variant * 10 + i + (variant === 2 ? slot * 100 : 0)),
      );
      if (locals.length > 60) return "long enough";
      const longer = [...locals, ...more];
      const replaced = 12 + random.below(24);
      const before = sequences[replaced] as Sequence;
      sequences[replaced] = { locals: longer, chain: sequenceHashes(longer) };
      live.delete(replaced);
      const from = heldPrefix(slot, t, (sequences[replaced] as Sequence).chain);
      store(slot, t, replaced, from, longer.length);
      return `extension over ${before.locals.length}`;
    }
    if (u < 94) {
      let names = removal(slot, t, chain);
      if (random.chance(0.15)) names = [...names, ...removal(slot, t, pick(sequences).chain)];
      const order = random.below(3);
      if (order === 0) names.reverse();
      else if (order === 1) names.sort(() => (random.chance(0.5) ? 1 : -1));
      if (random.chance(0.1) && stale.length) names.splice(random.below(names.length + 1), 0, pick(stale));
      remove(slot, t, names);
      return "remove";
    }
    const gone = u < 99 ? [slot] : slots.filter((s) => s >> 1 === slot >> 1);
    for (const s of gone) {
      const expected = model.clearRank(s);
      const got = subject.clearRank(s);
      if (got !== expected) throw new Error(`clear answered ${got}, the model ${expected}`);
    }
    return "clear";
  };

  const compare = (chain: readonly bigint[]): void => {
    queries++;
    const lower = model.findLower(chain);
    const gotLower = subject.findLower(chain);
    if (gotLower.size !== lower.size)
      throw new Error(`${gotLower.size} ranks with lower tiers, the model ${lower.size}`);
    for (const [slot, { host, disk }] of lower) {
      const got = gotLower.get(slot);
      if (got?.host !== host || got.disk !== disk)
        throw new Error(`slot ${slot} has ${got?.host}/${got?.disk} lower blocks, the model ${host}/${disk}`);
    }
    const expected = model.find(chain);
    const got = subject.find(chain);
    for (const slot of slots) {
      const score = got.get(slot) ?? 0;
      const exact = expected.get(slot) ?? 0;
      if (score !== exact) throw new Error(`slot ${slot} scores ${score}, the model ${exact}`);
    }
    if (got.size !== expected.size) throw new Error("a rank scores that is not there");
  };

  for (let op = 0; op < operations; op++) {
    let what = "?";
    try {
      what = step();
      for (const index of live) compare((sequences[index] as Sequence).chain);
      for (let i = 0; i < 4; i++) {
        const { chain } = pick(sequences);
        compare(chain.slice(0, 1 + random.below(chain.length)));
      }
      const { chain } = pick(sequences);
      compare([...chain.slice(0, random.below(chain.length) + 1), 0x5712a7n]);
      if (op % 16 === 0) subject.check();
    } catch (error) {
      throw new Error(`seed ${seed}, operation ${op} (${what}): ${(error as Error).message}`);
    }
  }
  for (const slot of slots) {
    model.clearRank(slot);
    subject.clearRank(slot);
  }
  subject.check();
  return queries;
}
