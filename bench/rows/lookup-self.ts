// Lookups of the kernel against lookups of the kernel: ten times the blocks, blocks that came one by one, cold chains.
import { collect, median, ratio, type Side, takeTurns } from "../harness.js";
import { lay, Pool } from "../kernel.js";
import { measure, type Row, type Run, roundsOf, type Suite } from "../rows.js";
import { shuffle } from "../workload/mix.js";
import * as workload from "../workload/sessions.js";
import { kernelSide, ROUNDS, sizeOf } from "./lookup.js";

const selfRow = (name: string, of: string, against: string, target: number, aim: number): Row => ({
  name: `index/${name}`,
  of,
  against,
  better: "lower",
  statistic: "median",
  target,
  aim,
});

/** The kernel against itself: the row's two sides are two pools, or two sets of queries. */
async function againstItself(run: Run, name: string, of: () => Side, against: () => Side): Promise<void> {
  if (!run.wants(name)) return;
  const sides = new Map([
    ["of", of()],
    ["against", against()],
  ]);
  collect();
  // Different pools or queries have different answers: each side is compared with its own first round.
  const turns = await takeTurns([...sides.values()], roundsOf(run, ROUNDS));
  for (const rounds of turns) {
    if (rounds.some((round) => round.sum !== rounds[0]!.sum)) throw new Error("the kernel's answers changed");
  }
  const samples = turns[0]!.map((round, i) => round.nanoseconds / turns[1]![i]!.nanoseconds);
  run.report(name, { ratio: median(samples), samples });
}

function filled(blocks: number, budgetMiB: number): Side {
  const sessions = workload.sessionsFor(blocks);
  const pool = new Pool({ ranks: 64, budgetMiB });
  pool.fill(sessions);
  return kernelSide(pool, lay(pool, workload.queriesOf(sessions)));
}

const growth: Suite = {
  rows: [selfRow("lookup-growth", "kernel, 10M blocks, 64 ranks", "kernel, 1M blocks", 2.5, 1.5)],
  run: (run) =>
    againstItself(
      run,
      "index/lookup-growth",
      () => filled(sizeOf(run, 10_000_000), 2048),
      () => filled(sizeOf(run, 1_000_000), 512),
    ),
};

/** Stored at once; the rest of a session's blocks is appended one by one. */
const WRITTEN_AT_ONCE = 192;

/** A pool of single-holder sessions, stored whole or grown by one block at a time, all sessions in turn. */
function grown(sessions: number, appended: boolean): Pool {
  const pool = new Pool({ ranks: 64, budgetMiB: 512 });
  const all = Array.from({ length: sessions }, (_, session) => {
    const rank = workload.rankOf(session, 0, 64);
    const tail = workload.tailBlocks(session);
    const locals = new Uint32Array(2 * workload.LONGEST_CHAIN);
    const names = new Uint32Array(2 * workload.LONGEST_CHAIN);
    workload.writeNames(names, session, tail, rank);
    return { rank, count: workload.writeLocals(locals, session, tail), locals, names };
  });
  for (const { rank, count, locals, names } of all) {
    pool.store(rank, appended ? Math.min(count, WRITTEN_AT_ONCE) : count, names, locals);
  }
  if (!appended) return pool;
  for (let at = WRITTEN_AT_ONCE; at < workload.LONGEST_CHAIN; at++) {
    for (const { rank, count, locals, names } of all) if (at < count) pool.append(rank, at, names, locals);
  }
  return pool;
}

const appended: Suite = {
  rows: [
    selfRow("lookup-appended", "kernel, sessions grown block by block, interleaved", "kernel, stored whole", 2, 1),
  ],
  async run(run) {
    const sessions = run.quick ? 100 : 1000;
    const queries = workload.queriesOf(sessions);
    const side = (oneByOne: boolean) => {
      const pool = grown(sessions, oneByOne);
      return kernelSide(pool, lay(pool, queries));
    };
    const sides = [side(true), side(false)] as const;
    await measure(run, "index/lookup-appended", async () => {
      const [of, against] = await takeTurns(sides, roundsOf(run, ROUNDS));
      return ratio(of!, against!, "median");
    });
  },
};

const DISTINCT = 50_000;

/**
 * Chains that all differ, in random order, against 512 that repeat, on one pool. With as many sessions as chains each
 * goes through blocks of its own; with fewer, chains of one session part behind its blocks.
 */
function coldSuite(name: string, blocks: string, sessionsOf: (run: Run) => number, budgetMiB: number): Suite {
  const of = `kernel, 50,000 distinct chains in random order, ${blocks}`;
  return {
    rows: [selfRow(name, of, "kernel, 512 repeated chains", 3, 1.5)],
    run(run) {
      const sessions = sessionsOf(run);
      const pool = new Pool({ ranks: 64, budgetMiB });
      pool.fill(sessions);
      const order = shuffle(Array.from({ length: sizeOf(run, DISTINCT) }, (_, chain) => chain));
      const distinct = lay(
        pool,
        order.map((chain) => workload.queryOf(chain % sessions, chain)),
      );
      const repeated = lay(pool, workload.queriesOf(sessions));
      return againstItself(
        run,
        `index/${name}`,
        () => kernelSide(pool, distinct),
        () => kernelSide(pool, repeated),
      );
    },
  };
}

const cold = coldSuite("lookup-cold", "1M blocks", (run) => workload.sessionsFor(sizeOf(run, 1_000_000)), 1024);
const coldest = coldSuite("lookup-cold-25m", "25M blocks", (run) => sizeOf(run, DISTINCT), 3500);

export const lookupSelfSuites: readonly Suite[] = [growth, appended, cold, coldest];
