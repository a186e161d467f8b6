// One selection by a policy's components: filters → scorers → picker, over the kernel's candidates.
import { WarmrouteError } from "../../core/errors.js";
import { disown, isPromise } from "../../core/foreign.js";
import { describe } from "../../core/ids.js";
import type { Kernel } from "../../kernel/kernel.js";
import { Status } from "../../kernel/status.js";
import {
  type ScoredView,
  type SelectionContext,
  WorkerInputs,
  type WorkerPicker,
} from "../../plugins/worker-selection/components.js";
import { Loan } from "../../plugins/worker-selection/guarded-views.js";
import type { WorkerSelectionPolicy } from "../../plugins/worker-selection/policy.js";
import type { PoolRanks } from "../ranks.js";
import { CandidateViews } from "./candidate-views.js";
import { inputsOf } from "./policy-inputs.js";

type Component = "filter" | "scorer" | "picker";

/** The candidates of the last explained selection, by the pool's rows, with what each scorer gave each. */
export interface ScoredCandidates {
  readonly rows: Uint32Array;
  readonly totals: Float64Array;
  readonly contributions: readonly Float64Array[];
}

/**
 * Runs a policy's components. While they run the kernel refuses every verb but the draw of a random number. Whatever
 * fails, nothing is booked, and columns and generator are as before.
 */
export class PolicyRun {
  /** What was chosen from, when the last selection was to be explained and came that far. */
  explained: ScoredCandidates | undefined;
  readonly #policy: WorkerSelectionPolicy;
  /** What filters read, and what scorers and picker read. */
  readonly #filterInputs: WorkerInputs;
  readonly #choiceInputs: WorkerInputs;
  readonly #filterViews: CandidateViews;
  readonly #choiceViews: CandidateViews;

  /** Reads what each component requires, once. Throws `invalid_plugin`. */
  constructor(policy: WorkerSelectionPolicy, ranks: PoolRanks) {
    const { filters, choice } = inputsOf(policy);
    this.#policy = policy;
    this.#filterInputs = unionOf(filters);
    this.#choiceInputs = unionOf(choice);
    this.#filterViews = new CandidateViews(ranks, filters);
    this.#choiceViews = new CandidateViews(ranks, choice);
  }

  get inputs(): WorkerInputs {
    return this.#filterInputs | this.#choiceInputs;
  }

  /**
   * Decides about the request that was written, and books it if its row says so. Answers the kernel's status, or
   * `allFiltered`. Throws `policy_failed`, `non_finite_cost` or `invalid_picker_row`. `hasTaints`: preferred taints
   * were written.
   */
  decide(kernel: Kernel, ctx: SelectionContext, hasTaints: boolean, explain: boolean): number {
    const usable = hasTaints ? ~0 : ~WorkerInputs.PREFERRED_TAINT;
    const choiceInputs = this.#choiceInputs & usable;
    const filterInputs = this.#filterInputs & usable;
    const filters = this.#policy.filters.length > 0;
    let n = kernel.exports.prepare(filters ? filterInputs : choiceInputs);
    this.explained = undefined;
    if (n < 0) return n;
    kernel.sync();
    try {
      let chosen: number;
      try {
        if (filters) {
          const all = n;
          n = this.#filter(kernel, ctx, all, hasTaints);
          if (n === 0) {
            kernel.exports.abandon();
            return Status.allFiltered;
          }
          kernel.exports.gather(n, n === all ? choiceInputs & ~filterInputs : choiceInputs);
        }
        chosen = this.#choose(kernel, ctx, n, hasTaints, explain);
      } catch (error) {
        if (!kernel.failed) kernel.exports.abandon();
        throw error;
      }
      return kernel.exports.commit(chosen);
    } finally {
      kernel.settle();
    }
  }

  /** Moves the rows that every filter keeps to the front; answers how many. */
  #filter(kernel: Kernel, ctx: SelectionContext, n: number, hasTaints: boolean): number {
    const { filters } = this.#policy;
    const views = this.#filterViews;
    views.show(kernel, n, hasTaints);
    const { places } = views;
    const loan = Loan.begin();
    const rows = loan ? views.rows.map((view) => loan.rows(view)) : views.rows;
    let kept = 0;
    let i = 0;
    kernel.hold();
    try {
      for (let row = 0; row < n; row++) {
        let stays = true;
        for (i = 0; i < filters.length && stays; i++) {
          stays = filters[i]!.keep(ctx, rows[i]!, row);
          if (typeof stays !== "boolean") throw new TypeError(`keep() must return true or false, not ${kindOf(stays)}`);
        }
        if (stays) places[kept++] = places[row]!;
      }
    } catch (cause) {
      throw this.#failure("filter", i, cause);
    } finally {
      kernel.release();
      loan?.end();
    }
    return kept;
  }

  #choose(kernel: Kernel, ctx: SelectionContext, n: number, hasTaints: boolean, explain: boolean): number {
    const { scorers, picker } = this.#policy;
    const views = this.#choiceViews;
    views.show(kernel, n, hasTaints);
    const { rows, totals, scratch, scored, places } = views;
    const contributions: Float64Array[] = [];
    kernel.hold();
    try {
      totals.fill(0);
      for (let i = 0; i < scorers.length; i++) {
        scratch.fill(Number.NaN);
        const loan = Loan.begin();
        try {
          const shown = rows[i]!;
          const given: unknown = loan
            ? scorers[i]!.score(ctx, loan.rows(shown), loan.column(scratch))
            : scorers[i]!.score(ctx, shown, scratch);
          if (isPromise(given)) throw new TypeError(`score() must return nothing, not ${kindOf(given)}`);
        } catch (cause) {
          throw this.#failure("scorer", i, cause);
        } finally {
          loan?.end(scratch);
        }
        addCosts(totals, scratch, i, this.#policy.label);
        if (explain) contributions.push(scratch.slice());
      }
      if (explain) this.explained = { rows: places.slice(), totals: totals.slice(), contributions };
      return this.#pick(picker, ctx, scored, n);
    } finally {
      kernel.release();
    }
  }

  #pick(picker: WorkerPicker, ctx: SelectionContext, scored: ScoredView, n: number): number {
    const loan = Loan.begin();
    let row: unknown;
    try {
      row = picker.pick(ctx, loan ? loan.rows(scored) : scored);
    } catch (cause) {
      throw this.#failure("picker", 0, cause);
    } finally {
      loan?.end();
    }
    if (typeof row === "number" && Number.isInteger(row) && row >= 0 && row < n) return row;
    const given = kindOf(row);
    throw new WarmrouteError(
      "invalid_picker_row",
      `the picker of the policy ${describe(this.#policy.label)} must return a row from 0 to ${n - 1}, not ${given}`,
      {
        details: { row: typeof row === "number" ? row : given, candidateCount: n },
      },
    );
  }

  /** The cause may hold anything, also a request's text: so it is kept, and not quoted. */
  #failure(component: Component, index: number, cause: unknown): WarmrouteError {
    const { label } = this.#policy;
    const which = component === "picker" ? "picker" : `${component} ${index}`;
    return new WarmrouteError("policy_failed", `the ${which} of the policy ${describe(label)} failed`, {
      cause,
      details: { policy: label, component, index },
    });
  }
}

/** Adds what one scorer gave, row by row. Throws `non_finite_cost` at the first that is no finite number, or sum. */
function addCosts(totals: Float64Array, costs: Float64Array, scorerIndex: number, label: string): void {
  for (let row = 0; row < totals.length; row++) {
    const total = totals[row]! + costs[row]!;
    if (!Number.isFinite(total)) {
      const message = `the scorer ${scorerIndex} of the policy ${describe(label)} left row ${row} without a finite cost`;
      throw new WarmrouteError("non_finite_cost", message, { details: { scorerIndex, row } });
    }
    totals[row] = total;
  }
}

function unionOf(inputs: readonly WorkerInputs[]): WorkerInputs {
  return inputs.reduce((all, one) => all | one, WorkerInputs.NONE);
}

/** A number as it is, anything else by its kind. */
function kindOf(value: unknown): string {
  if (typeof value === "number" || value === undefined || value === null) return String(value);
  if (!isPromise(value)) return `a ${typeof value}`;
  disown(value);
  return "a promise";
}
