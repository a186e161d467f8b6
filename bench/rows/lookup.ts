// Lookups of whole chains, in pools of several sizes, against other indexes and against the kernel itself.
import { mapIndex } from "../baselines/map.js";
import { trieIndex } from "../baselines/trie.js";
import { collect, compare, fresh, passesFor, type Side, timed, warmUp, wellBuilt } from "../harness.js";
import { type Exports, type Laid, lay, Pool } from "../kernel.js";
import { sketch } from "../locate.js";
import { compile, Native, nativeMissing } from "../native.js";
import { baselineRow, measure, type Row, type Run, roundsOf, type Suite } from "../rows.js";
import { sketchedIndex, sketchMissing } from "../sketches.js";
import { chain } from "../workload/chain.js";
import { denseSum, hex } from "../workload/checksum.js";
import * as workload from "../workload/sessions.js";

const ROUND_MS = 5;
export const ROUNDS = 15;
const WARM_CALLS = 60_000;
const SLOW_WARM_CALLS = 3_000;

export const sizeOf = (run: Run, blocks: number): number => (run.quick ? blocks / 20 : blocks);

/** Looks every query up; refers to nothing outside itself. */
function lookingUp({ indexFind }: Exports, { addresses, counts }: Laid): () => number {
  return () => {
    let sum = 0;
    for (let i = 0; i < addresses.length; i++) sum += indexFind(addresses[i]!, counts[i]!);
    return sum;
  };
}

/** Lookups in the kernel. */
export function kernelSide(pool: Pool, laid: Laid): Side {
  const { addresses, counts } = laid;
  const pass = fresh(lookingUp)(pool.exports, laid);
  const check = () => {
    let sum = 0;
    for (let i = 0; i < addresses.length; i++) {
      pool.exports.indexFind(addresses[i]!, counts[i]!);
      sum += pool.pairSum(i);
    }
    return hex(sum);
  };
  warmUp(WARM_CALLS, addresses.length, pass);
  const passes = passesFor(ROUND_MS, pass);
  return { name: "kernel", round: () => timed(addresses.length, passes, pass, check) };
}

/** Lookups in a JavaScript index: `find` of each query, answers in `depths`. */
function scriptSide<Q>(name: string, queries: readonly Q[], find: (query: Q) => number, depths: Uint32Array): Side {
  const pass = () => {
    let sum = 0;
    for (let i = 0; i < queries.length; i++) sum += find(queries[i]!);
    return sum;
  };
  const check = () => {
    let sum = 0;
    for (let i = 0; i < queries.length; i++) {
      find(queries[i]!);
      sum += denseSum(i, depths);
    }
    return hex(sum);
  };
  warmUp(SLOW_WARM_CALLS, queries.length, pass);
  const passes = passesFor(ROUND_MS, pass);
  return { name, round: () => timed(queries.length, passes, pass, check) };
}

function trieSide(sessions: number, ranks: number, queries: readonly workload.Query[]): Side {
  const trie = fresh(trieIndex)(ranks, false);
  const locals = new Uint32Array(2 * workload.LONGEST_CHAIN);
  workload.eachStore(sessions, ranks, (session, rank, tail) => {
    trie.store(rank, locals, locals, 0, workload.writeLocals(locals, session, tail));
  });
  return scriptSide("JavaScript trie", queries, (query) => trie.find(query.locals, query.count), trie.depths);
}

function mapSide(sessions: number, ranks: number, queries: readonly workload.Query[]): Side {
  const index = fresh(mapIndex)(ranks);
  const locals = new Uint32Array(2 * workload.LONGEST_CHAIN);
  const sequences = new BigUint64Array(workload.LONGEST_CHAIN);
  workload.eachStore(sessions, ranks, (session, rank, tail) => {
    const count = workload.writeLocals(locals, session, tail);
    chain(locals, count, new Uint32Array(sequences.buffer));
    index.store(rank, sequences, count);
  });
  const keys = queries.map((query) => Array.from(new BigUint64Array(query.sequences.buffer, 0, query.count)));
  return scriptSide("Map<bigint>", keys, (sequence) => index.find(sequence), index.depths);
}

function sketchSide(mode: "trie" | "big", blocks: number, ranks: number): Side {
  const { find, queries, depths } = sketchedIndex(mode, blocks, ranks);
  return scriptSide("jsmap.mjs", queries, find, depths);
}

async function startFlat(blocks: number, ranks: number): Promise<Native> {
  const path = sketch("ix.c");
  const program = compile("flat.c", path === undefined ? [] : [`-DSKETCH="${path}"`]);
  return Native.start(program, [blocks, ranks]);
}

/**
 * A side built anew for each round: of two large JavaScript heaps, the one built first would be the slower. The round
 * is the quickest of a few, since building is what takes the time.
 */
const rebuilt = (name: string, make: () => Side): Side => ({
  name,
  async round() {
    collect();
    const side = make();
    let best = await side.round();
    for (let i = 1; i < 5; i++) {
      const next = await side.round();
      if (next.nanoseconds < best.nanoseconds) best = next;
    }
    return best;
  },
});

/** Rows of one pool: the kernel against other indexes, and those against their sketches. */
class Contest {
  private readonly sessions: number;
  private readonly queries: workload.Query[];
  private pool: Side | undefined;
  private flat: Native | undefined;

  constructor(
    private readonly run: Run,
    private readonly blocks: number,
    private readonly ranks: number,
    private readonly budgetMiB: number,
  ) {
    this.sessions = workload.sessionsFor(blocks);
    this.queries = workload.queriesOf(this.sessions);
  }

  private kernel(): Side {
    if (!this.pool) {
      const pool = new Pool({ ranks: this.ranks, budgetMiB: this.budgetMiB });
      pool.fill(this.sessions);
      this.pool = kernelSide(pool, lay(pool, this.queries));
    }
    return this.pool;
  }

  private script(index: "trie" | "map"): Side {
    return (index === "trie" ? trieSide : mapSide)(this.sessions, this.ranks, this.queries);
  }

  private async native(verb: "flat" | "sketch"): Promise<Side> {
    this.flat ??= await startFlat(this.blocks, this.ranks);
    return this.flat.side("flat.c", verb, 0, workload.REPEATED_QUERIES, ROUND_MS);
  }

  /** A JavaScript index ÷ the kernel, and the same index ÷ its sketch. */
  async scriptRows(name: string, index: "trie" | "map"): Promise<void> {
    const { run, blocks, ranks } = this;
    await measure(run, `index/${name}`, async () => {
      const kernel = this.kernel();
      const theirs = await wellBuilt(() => this.script(index));
      return compare(theirs, kernel, roundsOf(run, ROUNDS), "median");
    });
    await measure(run, `baseline/${name}`, () => {
      const missing = sketchMissing("jsmap.mjs");
      if (missing) return { skipped: missing };
      const ours = rebuilt("ours", () => this.script(index));
      const theirs = rebuilt("jsmap.mjs", () => sketchSide(index === "trie" ? "trie" : "big", blocks, ranks));
      return compare(ours, theirs, roundsOf(run, 9), "median");
    });
  }

  /** The native table ÷ the kernel, and the same table ÷ its sketch. */
  async nativeRows(name: string): Promise<void> {
    const { run } = this;
    const missing = nativeMissing();
    try {
      await measure(run, `index/${name}`, async () =>
        missing
          ? { skipped: missing }
          : compare(await this.native("flat"), this.kernel(), roundsOf(run, ROUNDS), "median"),
      );
      await measure(run, `baseline/${name}`, async () => {
        const absent = missing ?? sketchMissing("ix.c");
        if (absent) return { skipped: absent };
        return compare(await this.native("flat"), await this.native("sketch"), roundsOf(run, ROUNDS), "median");
      });
    } finally {
      this.flat?.stop();
    }
  }
}

const lookupRow = (name: string, of: string, target: number, aim: number): Row => ({
  name: `index/${name}`,
  of,
  against: "kernel",
  better: "higher",
  statistic: "median",
  target,
  aim,
});
const flatTable = "native flat table with prefetch, gcc -O3";

const ordinary: Suite = {
  rows: [
    lookupRow("lookup-trie", "JavaScript trie, 1M blocks, 64 ranks", 80, 300),
    lookupRow("lookup-map", "Map<bigint>, 1M blocks, 64 ranks", 300, 1500),
    lookupRow("lookup-native-flat", `${flatTable}, 1M blocks, 64 ranks`, 13, 30),
    baselineRow("lookup-trie", "our trie", "jsmap.mjs trie"),
    baselineRow("lookup-map", "our Map<bigint>", "jsmap.mjs big"),
    baselineRow("lookup-native-flat", "our flat table", "ix.c F exact+prefetch32"),
  ],
  async run(run) {
    const contest = new Contest(run, sizeOf(run, 1_000_000), 64, 512);
    await contest.nativeRows("lookup-native-flat");
    await contest.scriptRows("lookup-trie", "trie");
    await contest.scriptRows("lookup-map", "map");
  },
};

const large: Suite = {
  rows: [
    lookupRow("lookup-native-flat-10m", `${flatTable}, 10M blocks, 2,048 ranks`, 5, 30),
    baselineRow("lookup-native-flat-10m", "our flat table", "ix.c F exact+prefetch32"),
  ],
  run: (run) => new Contest(run, sizeOf(run, 10_000_000), 2048, 2048).nativeRows("lookup-native-flat-10m"),
};

const manyRanks: Suite = {
  rows: [
    lookupRow("lookup-16k", "JavaScript trie, 1M blocks, 16,384 ranks", 30, 100),
    baselineRow("lookup-16k", "our trie", "jsmap.mjs trie"),
  ],
  run: (run) => new Contest(run, sizeOf(run, 1_000_000), 16_384, 1024).scriptRows("lookup-16k", "trie"),
};

export const lookupSuites: readonly Suite[] = [ordinary, large, manyRanks];
