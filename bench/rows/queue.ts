// How the cost of waiting grows with those who wait.

import type { Parked, QueuePool } from "../../src/scheduling/queue/contract.js";
import { PoolQueue } from "../../src/scheduling/queue/pool-queue.js";
import { Disagreement, type Round, ratio, type Side, takeTurns } from "../harness.js";
import { measure, roundsOf, type Suite } from "../rows.js";
import { mix32 } from "../workload/mix.js";

const TURNS = 5000;

/** A rank that is busy until one more request may go. */
class Gate implements QueuePool {
  readonly topology = 1;
  readonly workers = 1;
  room = 0;
  activePrefillTokens(): number {
    return this.room > 0 ? 0 : 1;
  }
  maxNumBatchedTokens(): number {
    return 1;
  }
  refresh(): void {}
}

/** A queue that holds `waiting` requests, each turn one comes and the first goes. */
function queueOf(waiting: number): Side {
  const pool = new Gate();
  const policyClass = { name: "bench", queuePolicy: "wspt", quantum: 1000, prefillBusyThreshold: 0 } as const;
  const clock = { now: () => 0, setTimeout: () => 0, clearTimeout: () => {} };
  const queue = new PoolQueue({
    pool,
    clock,
    classes: [policyClass],
    strictPriorityMaxWaitMs: 30_000,
    recheckMs: 60_000,
  });
  const slots = [0];
  const lane = { key: "", slots: () => slots };
  let came = 0;
  let went = 0;
  const run = () => {
    pool.room--;
    went++;
  };
  const come = () => {
    const costTokens = 1 + (mix32(came) % 100_000);
    const parked: Parked = {
      ...{ policyClass, lane, strictPriority: 0, priorityJump: 0, ingressAtMs: came, dueAtMs: undefined },
      ...{ rawTokens: costTokens, cachedTokens: 0, costTokens },
    };
    came++;
    void queue.park(parked, run);
  };
  for (let i = 0; i < waiting; i++) come();
  const turn = () => {
    come();
    pool.room = 1;
    queue.changed(0);
    queue.drain();
  };
  return {
    name: `${waiting} waiting`,
    async round(): Promise<Round> {
      for (let i = 0; i < TURNS; i++) turn();
      await null;
      const start = performance.now();
      for (let i = 0; i < TURNS; i++) turn();
      const nanoseconds = ((performance.now() - start) * 1e6) / TURNS;
      await null;
      if (queue.pending !== waiting || went !== came - waiting) throw new Disagreement("requests are missing");
      return { nanoseconds, sum: "" };
    },
  };
}

export const queueSuite: Suite = {
  rows: [
    {
      name: "queue/10k",
      of: "one request comes and one goes, 10,000 waiting",
      against: "100 waiting",
      better: "lower",
      statistic: "median",
      target: 2,
      aim: 1.5,
    },
  ],
  run: (run) =>
    measure(run, "queue/10k", async () => {
      const [of, against] = await takeTurns([queueOf(run.quick ? 1000 : 10_000), queueOf(100)], roundsOf(run, 15));
      return ratio(of!, against!, "median");
    }),
};
