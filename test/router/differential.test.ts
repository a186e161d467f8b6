// Random streams on a router through its public verbs, compared after each with the exact models of test/oracle.
import { describe, expect, it } from "vitest";
import "../../src/kernel/inlined.js";
import { hashTokens } from "../../src/kernel/hash.js";
import { createRouter } from "../../src/router/create-router.js";
import { sequenceHashes } from "../oracle/index.js";
import { randomSource } from "./random-operations.js";
import { type Prompt, type Rank, TIERS, Twin } from "./twin.js";

const SIZE = 4;
const SEEDS = 10;
const OPERATIONS = 1000;

/** Walks in a small tree, some for an adapter, most with a partial block at the end; and chains with local hash 0. */
function prompts(below: (n: number) => number): Prompt[] {
  const walks = Array.from({ length: 9 }, (_, i): Prompt => {
    const tokens: number[] = [];
    for (let depth = 1 + below(8), branch = 0; depth > 0; depth--) {
      branch = branch * 3 + below(2);
      for (let j = 0; j < SIZE; j++) tokens.push(branch * 64 + j);
    }
    for (let tail = below(SIZE); tail > 0; tail--) tokens.push(tail);
    const adapter = i % 4 === 3 ? { loraName: "adapter-a" } : {};
    const locals = [...hashTokens(tokens, SIZE, adapter).blockHashes];
    return { tokens: Uint32Array.from(tokens), ...adapter, locals, chain: sequenceHashes(locals) };
  });
  const zeros = [[0n], [0n, 0n, 0n], [5n, 0n, 5n]].map((locals) => ({ locals, chain: sequenceHashes(locals) }));
  return [...walks, ...zeros];
}

async function run(seed: number, blockNames: "engine" | "sequence"): Promise<void> {
  const random = randomSource(seed);
  const below = (n: number) => Math.floor(random() * n);
  const chance = (p: number) => random() < p;
  const pick = <T>(list: readonly T[]): T => list[below(list.length)]!;
  const tracksOutput = seed % 2 === 0;
  const router = await createRouter({
    blockSize: SIZE,
    blockNames,
    seed,
    maxRanks: 8,
    memoryBudgetBytes: 2 ** 22,
    config: { routerTrackOutputBlocks: tracksOutput },
  });
  const twin = new Twin(router, tracksOutput);
  const { model, live, workers } = twin;
  const all = prompts(below);
  const asked = all.filter((prompt) => prompt.tokens);
  // Ids whose order as text is not their order as numbers; beyond 2^53; the largest.
  let ids = ["9", "10", "9007199254740993", "18446744073709551615"];
  let nextId = 100;
  let nextName = 1n;
  const strangers: Rank[] = [
    { workerId: "77", dpRank: 0, key: -1, name: "77/0" },
    { workerId: "9", dpRank: 5, key: -2, name: "9/5" },
  ];
  const stale: bigint[] = [3n];

  /** A u64 as any of the forms that an event may have it in. */
  const u64 = (x: bigint) =>
    pick<string | bigint | number>([x, `${x}`, BigInt.asIntN(64, x), x < 2n ** 53n ? Number(x) : x]);
  const anyRank = (): Rank => (chance(0.04) || workers.size === 0 ? pick(strangers) : pick(twin.ranks()));
  const addWorker = (workerId: string) => {
    const incarnation = chance(0.8) ? "a" : "b";
    twin.addWorker({ workerId, dpSize: 1 + below(2), incarnation });
  };
  const nameFor = ({ key }: Rank, tier: number, sequence: bigint): bigint => {
    if (router.ownNames) return chance(0.005) ? 1n : sequence;
    const known = model.nameOf(key, tier, sequence);
    if (known !== undefined && chance(0.95)) return known;
    if (chance(0.1)) return pick(stale);
    return chance(0.3) ? sequence : nextName++;
  };

  const store = (): void => {
    const rank = anyRank();
    const tier = chance(0.35) ? 0 : 1 + below(3);
    const { locals, chain } = pick(all);
    let from = 0;
    if (chance(0.7)) while (from < chain.length && model.nameOf(rank.key, tier, chain[from]!) !== undefined) from++;
    else if (chance(0.5)) from = below(chain.length);
    const end = chance(0.6) ? chain.length : Math.min(chain.length, from + 1 + below(2));
    const names = chain.slice(from, end).map((sequence) => nameFor(rank, tier, sequence));
    let parent: bigint | null = null;
    if (from > 0) {
      const before = chain[from - 1]!;
      const named = [tier, 0, 1, 2, 3].map((t) => model.nameOf(rank.key, t, before)).find((name) => name !== undefined);
      parent = named ?? (chance(0.5) ? pick(stale) : before);
    }
    const wanted = locals.slice(from, end);
    const typed = () =>
      router.storeBlocks(rank, TIERS[tier]!, parent, BigUint64Array.from(names), BigUint64Array.from(wanted));
    const stored = () => ({
      parent_hash: parent === null ? null : u64(parent),
      blocks: names.map((name, i) => ({ block_hash: u64(name), tokens_hash: u64(wanted[i]!) })),
    });
    const document = () =>
      router.applyEvent({
        worker_id: u64(BigInt(rank.workerId)),
        storage_tier: TIERS[tier]!,
        event: { dp_rank: rank.dpRank, data: { stored: stored() } },
      });
    twin.store(rank, tier, parent, names, wanted, chance(0.5) ? typed : document);
  };

  const remove = (): void => {
    const rank = anyRank();
    const tier = chance(0.35) ? 0 : 1 + below(3);
    const held = pick(all)
      .chain.map((sequence) => model.nameOf(rank.key, tier, sequence))
      .filter((name) => name !== undefined);
    const names = chance(0.5) ? held.filter(() => chance(0.5)) : held.slice(below(held.length + 1));
    if (chance(0.2)) names.splice(below(names.length + 1), 0, pick(stale));
    if (chance(0.5)) names.reverse();
    if (chance(0.5)) twin.remove(rank, tier, names);
    else {
      const data = { removed: { block_hashes: names.map(u64) } };
      const event = { worker_id: rank.workerId, storage_tier: TIERS[tier], event: { dp_rank: rank.dpRank, data } };
      twin.event(rank, event, () => model.remove(rank.key, tier, names));
    }
    stale.push(...names);
    while (stale.length > 40) stale.shift();
  };

  const membership = (): void => {
    const u = below(10);
    if (u < 4) addWorker(pick(ids));
    else if (u < 8) twin.removeWorker(pick(ids));
    else {
      // A worker leaves for good and another comes in its place.
      const id = pick(ids);
      twin.removeWorker(id);
      ids = ids.map((other) => (other === id ? `${nextId++}` : other));
      addWorker(`${nextId - 1}`);
    }
  };

  const bookings = (): void => {
    const [id, one] = pick([...live]) ?? [];
    if (id === undefined || !one) return;
    expect(router.booking(id)).toMatchObject({ requestId: id, live: true, worker: one.booking.worker });
    const u = below(10);
    if (u < 2) twin.prefillComplete(one);
    else if (u < 4) twin.outputBlock(one, chance(0.5) ? undefined : below(5) / 4);
    else if (u < 6) twin.tokens(one, below(9));
    else twin.free(one);
  };

  /** Verbs of bookings that have ended do nothing. */
  const late = (): void => {
    if (!twin.ended.length) return;
    const booking = pick(twin.ended);
    booking.prefillComplete();
    booking.outputBlock(0.5);
    booking.tokens(100);
    booking.free();
  };

  const clear = (): void => {
    const rank = anyRank();
    const event = { worker_id: rank.workerId, event: { dp_rank: rank.dpRank, data: "cleared" } };
    twin.event(rank, event, () => model.clearRank(rank.key));
  };

  const reserve = (): void => {
    const { chain } = pick(all);
    const isl = SIZE * chain.length + below(SIZE);
    twin.reserve(`r${below(12)}`, anyRank(), chain, isl, chance(0.5) ? undefined : below(isl + 1));
  };

  const select = (): Promise<void> => {
    const pin = workers.size && chance(0.1) ? pick(twin.ranks()) : undefined;
    return twin.select(`r${below(12)}`, pick(asked), chance(0.5) ? 0 : 16, pin);
  };

  const probe = (): void => twin.probe(pick(asked));

  const verbs: [percent: number, verb: () => void | Promise<void>][] = [
    [30, store],
    [15, remove],
    [3, clear],
    [6, membership],
    [6, reserve],
    [18, bookings],
    [2, late],
    [5, probe],
    [15, select],
  ];
  const drawn = verbs.flatMap(([percent, verb]) => Array<() => void | Promise<void>>(percent).fill(verb));

  for (const id of ids.slice(0, 3)) addWorker(id);
  for (let op = 0; op < OPERATIONS; op++) {
    const verb = pick(drawn);
    try {
      await verb();
      twin.check(all);
    } catch (error) {
      throw new Error(`seed ${seed}, operation ${op} (${verb.name}): ${(error as Error).message}`, { cause: error });
    }
  }
  expect(router.stats().decisions).toBeGreaterThan(50);
  expect(router.stats().index.orphans).toBeGreaterThan(0);
  for (const id of ids) twin.removeWorker(id);
  twin.check(all);
  expect(router.loads()).toEqual([]);
  expect(router.stats()).toMatchObject({ index: { blocks: 0 }, bookings: { live: 0 } });
}

describe.each(["engine", "sequence"] as const)("blocks named by the %s", (blockNames) => {
  it(`agrees with the oracles over ${SEEDS} seeds × ${OPERATIONS} operations`, async () => {
    for (let seed = 1; seed <= SEEDS; seed++) await run(seed, blockNames);
  });
});
