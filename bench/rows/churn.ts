// What long use does to a pool: 20 million blocks stored and removed at constant size, against the same final content
// loaded into a new pool. Sessions are stored whole and evicted from their end; 5 % of removals hit the middle.
import { collect, ratio, takeTurns } from "../harness.js";
import { lay, Pool } from "../kernel.js";
import { measure, type Row, roundsOf, type Suite } from "../rows.js";
import { mix32 } from "../workload/mix.js";
import * as workload from "../workload/sessions.js";
import { kernelSide } from "./lookup.js";

const RANKS = 64;
const MIDDLE = 0.05;
const LONGEST_REMOVAL = 64;
const FIRST = workload.SYSTEM_BLOCKS; // system prompts stay: other sessions use them

/** A live session: `end` is one past its last held block, `holes` the missing ones before it. */
interface Live {
  session: number;
  rank: number;
  end: number;
  holes: Set<number>;
}

/** Numbers from 0 up to a bound, from a fixed seed. */
function numbers(): (below: number) => number {
  let state = 0x9e3779b9;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    return mix32(state) % below;
  };
}

class Churn {
  readonly pool = new Pool({ ranks: RANKS });
  readonly live: Live[] = [];
  private readonly locals = new Uint32Array(2 * workload.LONGEST_CHAIN);
  private readonly names = new Uint32Array(2 * workload.LONGEST_CHAIN);
  private readonly next = numbers();
  private session = 0;
  private held = 0;
  stored = 0;
  removed = 0;

  private add(): void {
    const session = this.session++;
    const rank = workload.rankOf(session, 0, RANKS);
    const tail = workload.tailBlocks(session);
    const count = workload.writeLocals(this.locals, session, tail);
    workload.writeNames(this.names, session, tail, rank);
    this.pool.store(rank, count, this.names, this.locals);
    this.live.push({ session, rank, end: count, holes: new Set() });
    this.held += tail;
    this.stored += tail;
  }

  private drop(live: Live, blocks: readonly number[]): void {
    workload.writeNames(this.names, live.session, workload.tailBlocks(live.session), live.rank);
    const names = new Uint32Array(2 * blocks.length);
    for (const [i, block] of blocks.entries()) names.set(this.names.subarray(2 * block, 2 * block + 2), 2 * i);
    const known = this.pool.remove(live.rank, names);
    if (known !== blocks.length) throw new Error(`the kernel knew ${known} of ${blocks.length} held blocks`);
    this.held -= known;
    this.removed += known;
  }

  private evict(): void {
    const at = this.next(this.live.length);
    const live = this.live[at]!;
    const wanted = 1 + this.next(LONGEST_REMOVAL);
    const blocks: number[] = [];
    if (this.next(1000) < MIDDLE * 1000) {
      const from = FIRST + this.next(Math.max(1, live.end - FIRST));
      for (let block = from; block < Math.min(from + wanted, live.end - 1); block++) {
        if (live.holes.has(block)) continue;
        live.holes.add(block);
        blocks.push(block);
      }
    } else {
      while (live.end > FIRST && blocks.length < wanted) {
        const block = --live.end;
        if (!live.holes.delete(block)) blocks.push(block);
      }
      while (live.holes.delete(live.end - 1)) live.end--;
    }
    if (blocks.length > 0) this.drop(live, blocks);
    if (live.end > FIRST) return;
    this.live[at] = this.live[this.live.length - 1]!;
    this.live.pop();
  }

  /** Keeps `blocks` blocks held until `turnover` blocks have been stored and removed again. */
  run(blocks: number, turnover: number): void {
    while (this.held < blocks) this.add();
    this.removed = 0;
    while (this.removed < turnover) {
      this.evict();
      while (this.held < blocks) this.add();
    }
  }

  /** A new pool with this one's content, system prompts included, in the order the sessions came. */
  reloaded(): Pool {
    const pool = new Pool({ ranks: RANKS });
    const system = new Set<number>();
    for (let session = 0; session < this.session; session++) {
      const rank = workload.rankOf(session, 0, RANKS);
      const pair = rank * workload.SYSTEM_PROMPTS + (session % workload.SYSTEM_PROMPTS);
      if (system.has(pair)) continue;
      system.add(pair);
      workload.writeLocals(this.locals, session, 0);
      workload.writeNames(this.names, session, 0, rank);
      pool.store(rank, FIRST, this.names, this.locals);
    }
    for (const live of [...this.live].sort((a, b) => a.session - b.session)) {
      const tail = live.end - FIRST;
      workload.writeLocals(this.locals, live.session, tail);
      workload.writeNames(this.names, live.session, tail, live.rank);
      pool.store(live.rank, live.end, this.names, this.locals);
      if (live.holes.size === 0) continue;
      const names = new Uint32Array(2 * live.holes.size);
      for (const [i, block] of [...live.holes].entries())
        names.set(this.names.subarray(2 * block, 2 * block + 2), 2 * i);
      pool.remove(live.rank, names);
    }
    return pool;
  }
}

const churnRow = (name: string, of: string, target: number, aim: number): Row => ({
  name: `index/${name}`,
  of: `${of} after 20M blocks stored and removed, 1M held`,
  against: "the same content in a new pool",
  better: "lower",
  statistic: "median",
  target,
  aim,
});

export const churnSuite: Suite = {
  rows: [churnRow("churn-bytes", "bytes of linear memory", 1.35, 1.1), churnRow("churn-lookup", "lookups", 1.5, 1)],
  async run(run) {
    const churn = new Churn();
    const empty = churn.pool.bytes();
    churn.run(run.quick ? 50_000 : 1_000_000, run.quick ? 500_000 : 20_000_000);
    const fresh = churn.reloaded();
    await measure(run, "index/churn-bytes", () => {
      const bytes = (churn.pool.bytes() - empty) / (fresh.bytes() - empty);
      return { ratio: bytes, samples: [bytes] };
    });
    await measure(run, "index/churn-lookup", async () => {
      const queries = Array.from({ length: workload.REPEATED_QUERIES }, (_, i) =>
        workload.queryOf(churn.live[(i * 7919) % churn.live.length]!.session),
      );
      const sides = [churn.pool, fresh].map((pool) => kernelSide(pool, lay(pool, queries)));
      collect();
      const [of, against] = await takeTurns(sides, roundsOf(run, 15));
      return ratio(of!, against!, "median");
    });
  },
};
