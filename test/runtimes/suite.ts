// One suite for every runtime. It uses the public library only and needs no clock, no file and no secure randomness,
// so its document must be the same everywhere; runtimes.test.ts also holds it against the golden files.
import type { Router, RouterOptions } from "../../src/router/contract.js";
import { decide, fleet, type Traffic, traffic } from "./decisions.js";

/** One entry of test/golden/hashes.json. */
export interface GoldenHashes {
  tokens: number[];
  block_size: number;
  block_hashes: string[];
  sequence_hashes: string[];
}

/** test/golden/draws.json, as far as the suite reads it. */
export interface GoldenDraws {
  generators: { seed: string; doubles: number[]; ties_of_4: number[] }[];
  pool_seed: { pool: string; fnv1a64: string };
}

/** One entry of test/golden/costs.json or two-tier.json. */
export interface GoldenScenario {
  scenario: object;
  expected: { outcome: string; candidates: { worker_id: string; cost?: number; probability: number }[] };
}

export interface Golden {
  hashes: GoldenHashes[];
  draws: GoldenDraws;
  scenarios: GoldenScenario[];
}

/** What the suite needs: an entry point of the library, and the one decision of `warmroute explain`. */
export interface Library {
  explainScenario(scenario: unknown): unknown;
  createRouter(options?: RouterOptions): Promise<Router>;
  hashTokens(tokens: Uint32Array, blockSize: number): { blockHashes: BigUint64Array; sequenceHashes: BigUint64Array };
}

type Explained = GoldenScenario["expected"];
export type SuiteDocument = Awaited<ReturnType<typeof makeDocument>>;

const clock = { now: () => 0 };
const MASK = (1n << 64n) - 1n;

async function sha256(bytes: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", bytes.slice());
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The same hashes with the last one changed. */
const spoil = (hashes: readonly string[]) =>
  hashes.map((hash, i) => (i === hashes.length - 1 ? ((BigInt(hash) + 1n) & MASK).toString() : hash));

/**
 * Both kinds of hash, asked for and as routing shows them. Worker 1 holds the golden hashes, worker 2 the same with the last one
 * spoilt. `overlap`: the blocks found of each, n and n − 1, rests on the block hashes. `added`: the active blocks that
 * the prompt adds beside a reservation of those sequence hashes, 0 and 1, rests on the sequence hashes.
 */
async function checkHashes({ createRouter, hashTokens }: Library, golden: GoldenHashes) {
  const workers = [{ workerId: "1" }, { workerId: "2" }];
  await using router = await createRouter({ blockSize: golden.block_size, seed: 1n, workers, clock });
  const tokens = Uint32Array.from(golden.tokens);
  const overlap: number[] = [];
  const added: number[] = [];
  for (const { workerId } of workers) {
    const hold = workerId === "1" ? (hashes: string[]) => hashes : spoil;
    const blocks = hold(golden.block_hashes).map((tokens_hash, i) => ({ block_hash: String(i + 1), tokens_hash }));
    router.applyEvent({ worker_id: workerId, event: { data: { stored: { parent_hash: null, blocks } } } });
    overlap.push(router.overlap({ tokens }).find((row) => row.workerId === workerId)?.deviceBlocks ?? 0);

    const load = () => router.loads().find((row) => row.workerId === workerId)?.activeDecodeBlocks ?? 0;
    const sequenceHashes = hold(golden.sequence_hashes);
    router.reserve({ requestId: `golden-${workerId}`, worker: { workerId }, sequenceHashes, islTokens: tokens.length });
    const before = load();
    await router.select({ tokens, pinnedWorker: { workerId } });
    added.push(load() - before);
  }
  const { blockHashes, sequenceHashes } = hashTokens(tokens, golden.block_size);
  return {
    block_size: golden.block_size,
    block_hashes: Array.from(blockHashes, String),
    sequence_hashes: Array.from(sequenceHashes, String),
    overlap,
    added,
  };
}

/**
 * The generator as the library shows it: which of n equal ranks each draw takes. The golden generators have no pool
 * term, so it is taken off the seed beforehand.
 */
async function checkDraws({ createRouter }: Library, { pool_seed }: GoldenDraws, seed: string) {
  const [model = ""] = pool_seed.pool.split("/");
  const take = async (ranks: number, count: number) => {
    const router = await createRouter({
      model,
      seed: (BigInt(seed) - BigInt(pool_seed.fnv1a64)) & MASK,
      workers: [{ workerId: "1", dpSize: ranks }],
      clock,
    });
    const taken: number[] = [];
    for (let i = 0; i < count; i++) {
      const { worker, booking } = await router.select({ tokens: [1, 2, 3] });
      taken.push(worker.dpRank);
      booking.free();
    }
    await router.close();
    return taken;
  };
  return { seed, of4: await take(4, 64), of4096: await take(4096, 16) };
}

/** All that a router knows of the ranks, as text. */
const knowledge = (router: Router, { prompts, tokens }: Traffic) =>
  JSON.stringify({
    loads: router.loads(),
    overlaps: prompts.map((prompt) => router.overlap({ tokens: tokens(prompt) })),
  });

/** 100 decisions; a snapshot after 60 of them, restored into a second router that then must take the last 40 alike. */
async function checkDecisions({ createRouter }: Library, golden: Golden) {
  const prompt = golden.hashes.find((entry) => entry.block_size === 16);
  if (!prompt) throw new Error("hashes.json has no prompt of block size 16");
  const options: RouterOptions = { model: "suite", blockSize: 16, seed: 7n, workers: fleet, clock };
  await using first = await createRouter(options);
  await using second = await createRouter(options);
  const ours = traffic(prompt);
  const decisions = await decide(first, ours, 0, 60);
  const snapshot = first.snapshot();
  second.restore(snapshot);
  const equal = knowledge(first, ours) === knowledge(second, ours);
  const theirs: Traffic = { ...ours, prompts: structuredClone(ours.prompts) };
  const rest = await decide(first, ours, 60, 100);
  const again = await decide(second, theirs, 60, 100);
  return {
    decisions: [...decisions, ...rest],
    knowledge: knowledge(first, ours),
    snapshot: {
      bytes: snapshot.length,
      sha256: await sha256(snapshot),
      equal,
      continues: JSON.stringify(rest) === JSON.stringify(again),
    },
  };
}

async function makeDocument(library: Library, golden: Golden) {
  const hashes = [];
  for (const entry of golden.hashes) hashes.push(await checkHashes(library, entry));
  const draws = [];
  for (const { seed } of golden.draws.generators) draws.push(await checkDraws(library, golden.draws, seed));
  const explained = golden.scenarios.map(({ scenario }) => library.explainScenario(scenario) as Explained);
  return { hashes, draws, explained, ...(await checkDecisions(library, golden)) };
}

/** Runs the suite; the answer is text, so that runtimes can be compared byte by byte. */
export async function runSuite(library: Library, golden: Golden): Promise<string> {
  const document = JSON.stringify(await makeDocument(library, golden));
  return JSON.stringify({ digest: await sha256(new TextEncoder().encode(document)), document: JSON.parse(document) });
}
