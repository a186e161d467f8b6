// Storing and removing blocks under foreign names, from an empty pool to a million blocks, against a JavaScript trie
// with a name map for each rank. A round builds both from nothing, so that growth is paid for on each side.
import { type TrieIndex, trieIndex } from "../baselines/trie.js";
import { collect, fresh, type Round, ratio, type Side, takeTurns } from "../harness.js";
import { Pool } from "../kernel.js";
import { baselineRow, measure, roundsOf, type Suite } from "../rows.js";
import { type SketchedTrie, sketchedTrie, sketchMissing } from "../sketches.js";
import { denseSum, hex } from "../workload/checksum.js";
import * as workload from "../workload/sessions.js";

const RANKS = 64;
/** Names of one removal event. */
const REMOVED_AT_ONCE = 16;
const CHECKED_QUERIES = 64;

/** Every store and removal as one list, its hashes laid end to end (two words a block). */
interface Script {
  /** For each stored block, beside its name: the kernel makes sequence hashes of them in place. */
  locals: Uint32Array;
  names: Uint32Array;
  /** Names in the order of their removal. */
  removed: Uint32Array;
  stores: { rank: number; from: number; count: number }[];
  removals: { rank: number; from: number; count: number }[];
  storedBlocks: number;
  removedBlocks: number;
}

/** Fills with `sessions` sessions, then removes every other one's tail from its end, on all its ranks. */
function scriptOf(sessions: number): Script {
  const words = 2 * workload.LONGEST_CHAIN * 3;
  const locals = new Uint32Array(sessions * words);
  const names = new Uint32Array(sessions * words);
  const removed = new Uint32Array(sessions * words);
  const script: Script = { locals, names, removed, stores: [], removals: [], storedBlocks: 0, removedBlocks: 0 };
  workload.eachStore(sessions, RANKS, (session, rank, tail) => {
    const from = script.storedBlocks;
    const count = workload.writeLocals(locals.subarray(2 * from), session, tail);
    workload.writeNames(names.subarray(2 * from), session, tail, rank);
    script.stores.push({ rank, from, count });
    script.storedBlocks += count;
    if (session % 2 === 1) return;
    for (let left = tail; left > 0; ) {
      const batch = Math.min(left, REMOVED_AT_ONCE);
      for (let i = 1; i <= batch; i++) {
        const block = from + workload.SYSTEM_BLOCKS + left - i;
        removed.set(names.subarray(2 * block, 2 * block + 2), 2 * (script.removedBlocks + i - 1));
      }
      script.removals.push({ rank, from: script.removedBlocks, count: batch });
      script.removedBlocks += batch;
      left -= batch;
    }
  });
  script.locals = locals.slice(0, 2 * script.storedBlocks);
  script.names = names.slice(0, 2 * script.storedBlocks);
  script.removed = removed.slice(0, 2 * script.removedBlocks);
  return script;
}

/** One index under test: `start` makes it empty and is not timed. */
interface Subject {
  name: string;
  start(): void;
  store(script: Script): void;
  remove(script: Script): void;
  sum(): number;
  /** Lets go of what was built: a heap that one side leaves behind is marked in the other side's time. */
  drop(): void;
}

/** The two sides of a subject: its `remove` goes on from what its `store` of the same round built. */
function sidesOf(subject: Subject, script: Script): [Side, Side] {
  const timed = (work: (script: Script) => void, blocks: number): Round => {
    const start = performance.now();
    work(script);
    const nanoseconds = ((performance.now() - start) * 1e6) / blocks;
    return { nanoseconds, sum: hex(subject.sum()) };
  };
  const store = () => {
    subject.start();
    collect();
    return timed(subject.store, script.storedBlocks);
  };
  const remove = () => {
    const round = timed(subject.remove, script.removedBlocks);
    subject.drop();
    return round;
  };
  return [
    { name: subject.name, round: store },
    { name: subject.name, round: remove },
  ];
}

function kernelSubject(script: Script, queries: readonly workload.Query[]): Subject {
  let pool: Pool | undefined;
  let at = { locals: 0, names: 0, removed: 0, sequences: 0 };
  return {
    name: "kernel",
    start() {
      pool = new Pool({ ranks: RANKS, budgetMiB: 1024 });
      at = {
        locals: pool.put(script.locals),
        names: pool.put(script.names),
        removed: pool.put(script.removed),
        sequences: pool.take(8 * workload.LONGEST_CHAIN),
      };
    },
    store({ stores }) {
      const { indexStore } = pool!.exports;
      for (const { rank, from, count } of stores) {
        const status = indexStore(rank, 0, 0, 0n, count, at.names + 8 * from, at.locals + 8 * from);
        if (status < 0) throw new Error(`a store was refused: status ${status}`);
      }
    },
    remove({ removals }) {
      const { indexRemove } = pool!.exports;
      for (const { rank, from, count } of removals) indexRemove(rank, 0, at.removed + 8 * from, count);
    },
    sum() {
      let sum = 0;
      for (const [i, query] of queries.entries()) {
        pool!.write(at.sequences, query.sequences);
        pool!.exports.indexFind(at.sequences, query.count);
        sum += pool!.pairSum(i);
      }
      return sum;
    },
    drop() {
      pool = undefined;
    },
  };
}

function trieSubject(queries: readonly workload.Query[]): Subject {
  const make = fresh(trieIndex);
  let trie: TrieIndex | undefined;
  return {
    name: "JavaScript trie",
    start() {
      trie = make(RANKS, true);
    },
    store({ stores, locals, names }) {
      for (const { rank, from, count } of stores) trie!.store(rank, locals, names, from, count);
    },
    remove({ removals, removed }) {
      for (const { rank, from, count } of removals) trie!.remove(rank, removed, from, count);
    },
    sum() {
      let sum = 0;
      for (const [i, query] of queries.entries()) {
        trie!.find(query.locals, query.count);
        sum += denseSum(i, trie!.depths);
      }
      return sum;
    },
    drop() {
      trie = undefined;
    },
  };
}

function sketchSubject(queries: readonly workload.Query[]): Subject {
  const Trie = sketchedTrie();
  let trie: SketchedTrie | undefined;
  return {
    name: "lane-bench.mjs trie",
    start() {
      trie = new Trie(RANKS);
    },
    store({ stores, locals, names }) {
      for (const { rank, from, count } of stores) {
        trie!.store(rank, 0, 0, names.subarray(2 * from), locals.subarray(2 * from), count);
      }
    },
    remove({ removals, removed }) {
      for (const { rank, from, count } of removals) trie!.remove(rank, removed.subarray(2 * from), count);
    },
    sum() {
      let sum = 0;
      for (const [i, query] of queries.entries()) {
        trie!.find(query.locals, query.count);
        sum += denseSum(i, trie!.sc);
      }
      return sum;
    },
    drop() {
      trie = undefined;
    },
  };
}

const trieRow = (name: string, target: number, aim: number) =>
  ({
    name: `index/${name}`,
    of: "JavaScript trie with name maps, per block",
    against: "kernel, foreign names, 64 ranks, 0 to 1M blocks",
    better: "higher",
    statistic: "median",
    target,
    aim,
  }) as const;

export const storeSuite: Suite = {
  rows: [
    trieRow("store", 2.8, 6),
    trieRow("remove", 2.8, 6),
    baselineRow("store", "our trie with name maps", "lane-bench.mjs trie"),
    baselineRow("remove", "our trie with name maps", "lane-bench.mjs trie"),
  ],
  async run(run) {
    const sessions = workload.sessionsFor(run.quick ? 50_000 : 1_000_000);
    const script = scriptOf(sessions);
    const queries = workload.queriesOf(sessions).slice(0, CHECKED_QUERIES);
    const wantsSketch = run.wants("baseline/store") || run.wants("baseline/remove");
    const missing = sketchMissing("lane-bench.mjs");
    if (missing) for (const name of ["store", "remove"]) run.report(`baseline/${name}`, { skipped: missing });
    const subjects = [trieSubject(queries)];
    if (run.wants("index/store") || run.wants("index/remove")) subjects.push(kernelSubject(script, queries));
    if (wantsSketch && !missing) subjects.push(sketchSubject(queries));
    const sides = subjects.flatMap((subject) => sidesOf(subject, script));
    await takeTurns(sides, 1); // for the optimising compiler
    const turns = await takeTurns(sides, roundsOf(run, 9));
    const of = (name: string, verb: 0 | 1) => turns[2 * subjects.findIndex((subject) => subject.name === name) + verb]!;
    for (const [verb, name] of (["store", "remove"] as const).entries()) {
      const ours = of("JavaScript trie", verb as 0 | 1);
      await measure(run, `index/${name}`, () => ratio(ours, of("kernel", verb as 0 | 1), "median"));
      await measure(run, `baseline/${name}`, () => ratio(ours, of("lane-bench.mjs trie", verb as 0 | 1), "median"));
    }
  },
};
