// What a held block costs in linear memory: single-holder tails, 4 million held blocks.
import { collect } from "../harness.js";
import { Pool } from "../kernel.js";
import { measure, type Row, type Suite } from "../rows.js";
import { chain } from "../workload/chain.js";
import * as workload from "../workload/sessions.js";

const RANKS = 64;

/** Loads sessions of one holder each until the ranks hold `blocks` blocks; bytes per held block. */
function bytesPerBlock(blocks: number, ownNames: boolean): number {
  const pool = new Pool({ ranks: RANKS, ownNames });
  const before = pool.bytes();
  const locals = new Uint32Array(2 * workload.LONGEST_CHAIN);
  const names = new Uint32Array(2 * workload.LONGEST_CHAIN);
  const system = new Set<number>(); // (rank, system prompt) pairs whose blocks the rank holds already
  let held = 0;
  for (let session = 0; held < blocks; session++) {
    const rank = workload.rankOf(session, 0, RANKS);
    const tail = workload.tailBlocks(session);
    const count = workload.writeLocals(locals, session, tail);
    if (ownNames) chain(locals, count, names);
    else workload.writeNames(names, session, tail, rank);
    pool.store(rank, count, names, locals);
    const pair = rank * workload.SYSTEM_PROMPTS + (session % workload.SYSTEM_PROMPTS);
    held += system.has(pair) ? tail : count;
    system.add(pair);
  }
  return (pool.bytes() - before) / held;
}

const bytesRow = (name: string, names: string, target: number, aim: number): Row => ({
  name: `index/${name}`,
  of: "bytes of linear memory for the content, 4M blocks",
  against: `held blocks, ${names}`,
  better: "lower",
  statistic: "median",
  target,
  aim,
});

export const bytesSuite: Suite = {
  rows: [
    bytesRow("bytes-own", "names are sequence hashes", 15.5, 14),
    bytesRow("bytes-foreign", "foreign names", 25, 22),
  ],
  async run(run) {
    for (const [name, ownNames] of [
      ["index/bytes-own", true],
      ["index/bytes-foreign", false],
    ] as const) {
      await measure(run, name, () => {
        const bytes = bytesPerBlock(run.quick ? 200_000 : 4_000_000, ownNames);
        collect();
        return { ratio: bytes, samples: [bytes] };
      });
    }
  },
};
