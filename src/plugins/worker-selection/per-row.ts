import type { CandidateView, SelectionContext, WorkerInputs, WorkerScorer } from "./components.js";

/** A scorer from a function that gives one row's cost. */
export function perRow(
  requiredInputs: WorkerInputs,
  cost: (ctx: SelectionContext, rows: CandidateView, row: number) => number,
): WorkerScorer {
  return {
    requiredInputs,
    score(ctx, rows, costs) {
      for (let row = 0; row < rows.length; row++) costs[row] = cost(ctx, rows, row);
    },
  };
}
