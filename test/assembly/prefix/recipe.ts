// The differential recipe of spec/indexer.md §2.4: a pool of related prompts, a mix of operations
// as engines emit them, and after each operation every live sequence asked and compared with the
// exact model. Lower tiers, renamed blocks and re-used names are added to it.
import { IndexModel, sequenceHashes } from "../../oracle/index.js";
import { generator } from "./harness.js";
import { describeStream, shrink } from "./shrink.js";
import { Difference, type Operation, replay, type Step, type Subject } from "./stream.js";

interface Sequence {
  locals: bigint[];
  chain: bigint[];
}

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

export interface RecipeOptions {
  seed: number;
  operations: number;
  ownNames: boolean;
}

/** Two to four workers with one or two ranks each; rank r of worker w is the number 2w + r. */
function startRanks(seed: number): number[] {
  const workers = 2 + (seed % 3);
  const ranks = 1 + (seed % 2);
  return Array.from({ length: workers }, (_, w) => Array.from({ length: ranks }, (_, r) => w * 2 + r)).flat();
}

/** The stream of a seed. */
export function makeStream({ seed, operations, ownNames }: RecipeOptions): Step[] {
  const random = generator(seed);
  const model = new IndexModel(ownNames);
  const sequences = pool(random);
  const live = new Set<number>();
  const stale: bigint[] = [];
  const stream: Step[] = [];
  /** Ranks that are there, and those that left, as they left. */
  const present = new Set<number>();
  const gone: number[][] = [];
  let fresh = 0n;
  let nextWorker = 4;

  const pick = <T>(list: readonly T[]): T => list[random.below(list.length)] as T;
  const tier = () => (random.chance(0.2) ? 1 + random.below(3) : 0);
  const emit = (operation: Operation) => stream.push({ operation, queries: [] });
  const heldPrefix = (rank: number, t: number, chain: readonly bigint[]): number => {
    let i = 0;
    while (i < chain.length && model.nameOf(rank, t, chain[i] as bigint) !== undefined) i++;
    return i;
  };
  const nameFor = (rank: number, t: number, sequence: bigint): bigint => {
    if (ownNames) return sequence;
    const known = model.nameOf(rank, t, sequence);
    if (known !== undefined && !random.chance(0.03)) return known;
    if (stale.length && random.chance(0.1)) return pick(stale);
    // Names are often the same on several ranks, and 0 is one.
    if (random.chance(0.3)) return sequence;
    return random.chance(0.02) ? 0n : ++fresh;
  };

  const store = (rank: number, t: number, index: number, from: number, count: number): void => {
    const { locals, chain } = sequences[index] as Sequence;
    let parent: bigint | null = null;
    if (from > 0) {
      const before = chain[from - 1] as bigint;
      const tiers = [t, 0, 1, 2, 3];
      const named = tiers.map((x) => model.nameOf(rank, x, before)).find((name) => name !== undefined);
      parent = named ?? (stale.length && random.chance(0.5) ? pick(stale) : before);
    }
    const names = chain.slice(from, from + count).map((sequence) => nameFor(rank, t, sequence));
    const wanted = locals.slice(from, from + count);
    model.store(rank, t, parent, names, wanted);
    emit({ kind: "store", rank, tier: t, parent, names, locals: wanted });
    live.add(index);
  };
  const remove = (rank: number, t: number, names: bigint[]): void => {
    model.remove(rank, t, names);
    emit({ kind: "remove", rank, tier: t, names });
    stale.push(...names);
    while (stale.length > 60) stale.shift();
  };
  const removal = (rank: number, t: number, chain: readonly bigint[]): bigint[] => {
    const held = chain.map((s) => model.nameOf(rank, t, s)).filter((name) => name !== undefined);
    if (!held.length) return [];
    const u = random.below(100);
    if (u < 35) return held.slice(-1 - random.below(4));
    if (u < 50) return held.slice(0, 1 + random.below(4));
    if (u < 70) return [pick(held)];
    const some = new Set(Array.from({ length: 1 + random.below(5) }, () => pick(held)));
    return [...some];
  };
  const join = (rank: number): void => {
    present.add(rank);
    emit({ kind: "join", rank });
  };
  const leave = (ranks: number[]): void => {
    for (const rank of ranks) {
      present.delete(rank);
      model.clearRank(rank);
      emit({ kind: "leave", rank });
    }
    gone.push(ranks);
  };
  /** Half of those that left come back with the same id, half with a new one; into slots that others had, too. */
  const comeBack = (): void => {
    const [ranks] = gone.splice(random.below(gone.length), 1) as [number[]];
    const worker = random.chance(0.5) ? (ranks[0] as number) >> 1 : nextWorker++;
    for (const rank of ranks) join(worker * 2 + (rank & 1));
  };

  const step = (): void => {
    if (gone.length && (present.size === 0 || random.chance(0.15))) comeBack();
    const rank = pick([...present]);
    const t = tier();
    const index = live.size && random.chance(0.5) ? pick([...live]) : random.below(sequences.length);
    const { locals, chain } = sequences[index] as Sequence;
    const u = random.below(100);
    if (u < 40) {
      const from = heldPrefix(rank, t, chain);
      if (from === chain.length) {
        if (random.chance(0.25)) store(rank, t, index, 0, chain.length);
        return;
      }
      const beyond = chain.slice(from + 1).some((s) => model.nameOf(rank, t, s) !== undefined);
      if (beyond && random.chance(0.4)) store(rank, t, index, from, 1);
      else if (random.chance(0.3) && chain.length - from > 1) {
        const first = 1 + random.below(chain.length - from - 1);
        store(rank, t, index, from, first);
        store(rank, t, index, from + first, chain.length - from - first);
      } else if (random.chance(0.1)) store(rank, t, index, random.below(chain.length), 1 + random.below(4));
      else store(rank, t, index, random.chance(0.2) ? 0 : from, chain.length);
    } else if (u < 52) {
      // A decode extension: two of three variants are shared between ranks.
      const variant = random.below(3);
      const more = Array.from({ length: 1 + random.below(3) }, (_, i) =>
        BigInt(1000 + variant * 10 + i + (variant === 2 ? rank * 100 : 0)),
      );
      if (locals.length > 60) return;
      const longer = [...locals, ...more];
      const replaced = 12 + random.below(24);
      sequences[replaced] = { locals: longer, chain: sequenceHashes(longer) };
      live.delete(replaced);
      store(rank, t, replaced, heldPrefix(rank, t, sequences[replaced].chain), longer.length);
    } else if (u < 94) {
      let names = removal(rank, t, chain);
      if (random.chance(0.15)) names = [...names, ...removal(rank, t, pick(sequences).chain)];
      const order = random.below(3);
      if (order === 0) names.reverse();
      else if (order === 1) names.sort(() => (random.chance(0.5) ? 1 : -1));
      if (random.chance(0.1) && stale.length) names.splice(random.below(names.length + 1), 0, pick(stale));
      remove(rank, t, names);
    } else if (u < 97) {
      model.clearRank(rank);
      emit({ kind: "clear", rank });
    } else if (u < 99) leave([rank]);
    else leave([...present].filter((other) => other >> 1 === rank >> 1));
  };

  for (const rank of startRanks(seed)) join(rank);
  for (let op = 0; op < operations; op++) {
    const before = stream.length;
    step();
    if (stream.length === before) continue;
    const queries = [...live].map((index) => (sequences[index] as Sequence).chain);
    for (let i = 0; i < 4; i++) {
      const { chain } = pick(sequences);
      queries.push(chain.slice(0, 1 + random.below(chain.length)));
    }
    const { chain } = pick(sequences);
    queries.push([...chain.slice(0, random.below(chain.length) + 1), 0x5712a7n]);
    (stream.at(-1) as Step).queries = queries;
  }
  return stream;
}

/**
 * Runs the recipe; answers how many queries were compared. Throws at the first difference, with the
 * smallest stream found that still differs.
 */
export function runRecipe(make: () => Subject, options: RecipeOptions): number {
  const stream = makeStream(options);
  try {
    return replay(make(), options.ownNames, stream);
  } catch (error) {
    if (!(error instanceof Difference)) throw error;
    const small = shrink(make, options.ownNames, stream);
    const whole = `seed ${options.seed}, operation ${error.at} of ${stream.length}: ${error.message}`;
    throw new Error(`${whole}\nshrunk to ${small.length} operations:\n${describeStream(small)}`, { cause: error });
  }
}
