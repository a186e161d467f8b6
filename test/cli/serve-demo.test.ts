import { expect, test } from "vitest";
import { why } from "../../src/cli/demo.js";
import type { Selection } from "../../src/router/contract.js";

/** A decision for worker 1; rows are [worker, blocks held, cost]. */
const decision = (reason: string, rows: [string, number, number][]) =>
  ({
    reason,
    worker: { workerId: "1", dpRank: 0 },
    overlap: { deviceBlocks: rows.find(([worker]) => worker === "1")![1] },
    candidates: rows.map(([workerId, held, cost]) => ({ workerId, dpRank: 0, cost, terms: { device_credit: held } })),
  }) as unknown as Selection;

test.each([
  ["only_candidate", [["1", 0, 4]], "it is the only worker"],
  [
    "no_signal",
    [
      ["1", 0, 4],
      ["2", 0, 4],
    ],
    "no worker holds any of it and none is busy: drawn at random among 2",
  ],
  [
    "tie",
    [
      ["1", 0, 4],
      ["2", 0, 4],
      ["3", 0, 9],
    ],
    "cost 4.0 here, as on 1 more: drawn at random among them",
  ],
  [
    "cost",
    [
      ["1", 3, 5],
      ["2", 1, 9],
      ["3", 0, 7],
    ],
    "it holds the start already: cost 5.0, against 7.0 on the next best, worker 3",
  ],
  [
    "cost",
    [
      ["1", 0, 5],
      ["2", 0, 9.25],
    ],
    "it has the least to do: cost 5.0, against 9.3 on the next best, worker 2",
  ],
  [
    "cost",
    [
      ["1", 0, 5],
      ["2", 7, 90],
    ],
    "worker 2 holds 7 but is busy, cost 90.0; 5.0 here",
  ],
] as const)("%s %j", (reason, rows, words) => {
  expect(why(decision(reason, rows as unknown as [string, number, number][]))).toBe(words);
});
