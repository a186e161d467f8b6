// What a request's load costs: its booking and its end, against hashing its prompt.
import { Disagreement, passesFor, type Round, ratio, type Side, takeTurns, timed } from "../harness.js";
import { Pool } from "../kernel.js";
import { measure, roundsOf, type Suite } from "../rows.js";
import { mix32 } from "../workload/mix.js";

const TOKENS = 8192;
const BLOCK_SIZE = 16;
const BLOCKS = TOKENS / BLOCK_SIZE;
const RANKS = 64;
const PROMPTS = 512;
/** Bookings that are live at any time. */
const LIVE = 64;
/** Tokens that every prompt begins with. */
const SHARED = 1024;
const ROUND_MS = 20;

const tokensOf = (prompt: number): Uint32Array =>
  Uint32Array.from(
    { length: TOKENS },
    (_, i) => mix32(i < SHARED ? i : Math.imul(prompt + 1, 0x9e3779b1) + i) % 128_000,
  );

export const loadSuite: Suite = {
  rows: [
    {
      name: "load/booking-8k",
      of: `booking + free, ${TOKENS} tokens, ${RANKS} ranks, ${LIVE} live`,
      against: "the fused hash alone",
      better: "lower",
      statistic: "median",
      target: 0.8,
      aim: 0.3,
    },
  ],
  run: (run) =>
    measure(run, "load/booking-8k", async () => {
      const pool = new Pool({ ranks: RANKS, budgetMiB: 256 });
      const { exports } = pool;
      const prompts = Array.from({ length: run.quick ? 64 : PROMPTS }, (_, prompt) => pool.put(tokensOf(prompt)));
      const sequences = pool.take(8 * BLOCKS);
      const hash = (at: number) => exports.hashBlocks(at, TOKENS, BLOCK_SIZE, BLOCK_SIZE, 1n, 0, sequences);
      const hashes = prompts.map((at) => {
        hash(at);
        return pool.read(sequences, 2 * BLOCKS).slice();
      });
      const names = exports.namesArea(BLOCKS);
      const live: { id: number; generation: number }[] = [];
      const free = () => {
        const { id, generation } = live.shift()!;
        exports.bookingFree(id, generation);
      };
      const book = (): number => {
        for (const [prompt, words] of hashes.entries()) {
          pool.write(names, words);
          const id = exports.reserve(prompt % RANKS, BLOCKS, 0, TOKENS);
          if (id === 0) throw new Disagreement("a booking was refused");
          live.push({ id, generation: exports.bookingGeneration(id) });
          if (live.length > LIVE) free();
        }
        return live.length;
      };
      const whole: Side = {
        name: "booking + free",
        round(): Round {
          return timed(prompts.length, passesFor(ROUND_MS, book), book, () => "");
        },
      };
      const hashPass = () => prompts.reduce((sum, at) => sum + hash(at), 0);
      const alone: Side = {
        name: "hash",
        round: () => timed(prompts.length, passesFor(ROUND_MS, hashPass), hashPass, () => ""),
      };
      const [of, against] = await takeTurns([whole, alone], roundsOf(run, 15));
      while (live.length > 0) free();
      if (exports.counter(5) !== 0) throw new Disagreement("bookings are left");
      return ratio(of!, against!, "median");
    }),
};
