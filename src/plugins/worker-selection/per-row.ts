import { disown } from "../../core/foreign.js";
import type { CandidateView, SelectionContext, WorkerInputs, WorkerScorer } from "./components.js";

/** A scorer from a function that gives one row's cost. */
export function perRow(
  requiredInputs: WorkerInputs,
  cost: (ctx: SelectionContext, rows: CandidateView, row: number) => number,
): WorkerScorer {
  return {
    requiredInputs,
    score(ctx, rows, costs) {
      for (let row = 0; row < rows.length; row++) {
        const value: unknown = cost(ctx, rows, row);
        // What an async function promises concerns nobody: the row has no cost.
        if (typeof value === "number") costs[row] = value;
        else disown(value);
      }
    },
  };
}
