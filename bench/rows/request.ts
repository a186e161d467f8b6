// A whole request through the public library, `select` and `free`, against the fused kernel hash alone of the same
// prompts in the same order, which lie in linear memory already: what routing costs beyond hashing the prompt.
import type { Selection } from "../../src/router/contract.js";
import { collect, Disagreement, type Round, ratio, type Side, takeTurns } from "../harness.js";
import { Pool } from "../kernel.js";
import { measure, type Row, roundsOf, type Suite } from "../rows.js";
import { mix32, Stream, shuffle, writeHashes } from "../workload/mix.js";
import { rankCount, rankOf, SYSTEM_BLOCKS, SYSTEM_PROMPTS } from "../workload/sessions.js";

type Library = typeof import("../../src/index.js");

const RANKS = 64;
const PROMPTS = 512;
const LIVE = 64;
/** Passes over all prompts in a round. */
const PASSES = 4;
const BLOCK_SIZE = 16;
const LONGEST = 32_768;
const SYSTEM_TOKENS = SYSTEM_BLOCKS * BLOCK_SIZE;
const SEED = 1337n;
const SHARES = [1, 0.6, 0.3];

/** Tokens of a prompt: one of 16 system prompts, then its own. */
function tokensOf(prompt: number): Uint32Array {
  const system = prompt % SYSTEM_PROMPTS;
  return Uint32Array.from({ length: LONGEST }, (_, i) =>
    i < SYSTEM_TOKENS
      ? mix32(Math.imul(system + 1, 0x9e3779b1) + i) % 128_000
      : mix32(Math.imul(prompt + 100, 0x85ebca6b) + i) % 128_000,
  );
}

/** Leading blocks of a whole prompt that its `k`-th rank holds. */
const heldBlocks = (k: number): number => Math.floor((LONGEST / BLOCK_SIZE) * SHARES[k]!);

/** Leading blocks of a prompt that each rank holds, all of its system prompt included. */
function depthsOf(prompts: number): Uint32Array[] {
  const system = Array.from({ length: SYSTEM_PROMPTS }, () => new Uint32Array(RANKS));
  for (let prompt = 0; prompt < prompts; prompt++) {
    for (let k = 0; k < rankCount(prompt); k++)
      system[prompt % SYSTEM_PROMPTS]![rankOf(prompt, k, RANKS)] = SYSTEM_BLOCKS;
  }
  return Array.from({ length: prompts }, (_, prompt) => {
    const depths = system[prompt % SYSTEM_PROMPTS]!.slice();
    for (let k = 0; k < rankCount(prompt); k++) {
      const rank = rankOf(prompt, k, RANKS);
      depths[rank] = Math.max(depths[rank]!, heldBlocks(k));
    }
    return depths;
  });
}

/** The kernel's hash of prompts in its memory, and nothing else. */
class Hasher {
  private readonly pool = new Pool({ ranks: 1, budgetMiB: 512 });
  private readonly tokens = this.pool.take(LONGEST * 4);
  private readonly sequences = this.pool.take(LONGEST * 4);
  private readonly locals = this.pool.take(LONGEST * 4);

  localHashes(tokens: Uint32Array): BigUint64Array {
    const { pool, locals } = this;
    pool.write(this.tokens, tokens);
    const blocks = pool.exports.localBlocks(this.tokens, tokens.length, BLOCK_SIZE, BLOCK_SIZE, SEED, locals, 0);
    return new BigUint64Array(pool.exports.memory.buffer, locals, blocks).slice();
  }

  /** Copies a prompt in for good; answers where it lies. */
  keep(tokens: Uint32Array): number {
    return this.pool.put(tokens);
  }

  /** Hashes `count` tokens of a kept prompt. */
  hash(at: number, count: number): void {
    this.pool.exports.hashBlocks(at, count, BLOCK_SIZE, BLOCK_SIZE, SEED, 0, this.sequences);
  }
}

async function loadedRouter(hasher: Hasher, prompts: readonly Uint32Array[]) {
  const path = new URL("./index.js", import.meta.url).href;
  const { createRouter } = (await import(path)) as Library;
  const router = await createRouter({
    blockSize: BLOCK_SIZE,
    seed: 1,
    workers: Array.from({ length: RANKS }, (_, rank) => ({ workerId: rank + 1 })),
  });
  for (const [prompt, tokens] of prompts.entries()) {
    const locals = hasher.localHashes(tokens);
    const words = new Uint32Array(2 * locals.length);
    for (let k = 0; k < rankCount(prompt); k++) {
      const rank = rankOf(prompt, k, RANKS);
      writeHashes(words, 0, SYSTEM_BLOCKS, Stream.SYSTEM_NAME, prompt % SYSTEM_PROMPTS, rank);
      writeHashes(words, SYSTEM_BLOCKS, locals.length - SYSTEM_BLOCKS, Stream.TAIL_NAME, prompt, rank);
      const names = new BigUint64Array(words.buffer);
      const blocks = Array.from({ length: heldBlocks(k) }, (_, i) => ({
        block_hash: names[i]!,
        tokens_hash: locals[i]!,
      }));
      const { applied, reason } = router.applyEvent({
        worker_id: rank + 1,
        event: { event_id: 0, dp_rank: 0, data: { stored: { parent_hash: null, blocks } } },
      });
      if (!applied) throw new Error(`a store was refused: ${reason}`);
    }
  }
  return router;
}

const requestRow = (name: string, tokens: number, target: number, aim: number): Row => ({
  name: `request/${name}`,
  of: `select + free, ${tokens} tokens, 64 ranks, 1M blocks`,
  against: "the fused hash alone",
  better: "lower",
  statistic: "median",
  target,
  aim,
});

const sizes = { "request/32k": 32_768, "request/8k": 8192 } as const;

export const requestSuite: Suite = {
  rows: [requestRow("32k", 32_768, 1.8, 1.25), requestRow("8k", 8192, 2.5, 1.6)],
  async run(run) {
    const count = run.quick ? 32 : PROMPTS;
    const prompts = Array.from({ length: count }, (_, prompt) => tokensOf(prompt));
    const depths = depthsOf(count);
    const hasher = new Hasher();
    const router = await loadedRouter(hasher, prompts);
    const kept = prompts.map((tokens) => hasher.keep(tokens));
    const live: Selection[] = [];
    const order = shuffle(Array.from({ length: count }, (_, i) => i));
    for (const [name, length] of Object.entries(sizes)) {
      await measure(run, name, async () => {
        const cut = prompts.map((tokens) => tokens.subarray(0, length));
        const pass = async (check: boolean) => {
          for (const prompt of order) {
            const selection = await router.select({ tokens: cut[prompt]! });
            live.push(selection);
            if (live.length > LIVE) live.shift()!.booking.free();
            if (!check) continue;
            const expected = Math.min(depths[prompt]![Number(selection.worker.workerId) - 1]!, length / BLOCK_SIZE);
            const { deviceBlocks } = selection.overlap;
            if (deviceBlocks !== expected) throw new Disagreement(`an overlap is ${deviceBlocks}, not ${expected}`);
          }
        };
        const whole: Side = {
          name: "select + free",
          async round(): Promise<Round> {
            await pass(true);
            const start = performance.now();
            for (let i = 0; i < PASSES; i++) await pass(false);
            return { nanoseconds: ((performance.now() - start) * 1e6) / (PASSES * count), sum: "" };
          },
        };
        const hash: Side = {
          name: "hash",
          round(): Round {
            for (const prompt of order) hasher.hash(kept[prompt]!, length);
            const start = performance.now();
            for (let i = 0; i < PASSES; i++) for (const prompt of order) hasher.hash(kept[prompt]!, length);
            return { nanoseconds: ((performance.now() - start) * 1e6) / (PASSES * count), sum: "" };
          },
        };
        for (let i = 0; i < 10_000; i += count) await pass(false);
        collect();
        const [of, against] = await takeTurns([whole, hash], roundsOf(run, 15));
        return ratio(of!, against!, "median");
      });
    }
    for (const selection of live) selection.booking.free();
    await router.close();
  },
};
