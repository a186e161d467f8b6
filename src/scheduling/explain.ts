// Putting a decision into words: outcomes, candidates with their terms, and why ranks were left out.
import type { WarmrouteError } from "../core/errors.js";
import type { Candidate, Excluded, Outcome } from "../core/types.js";
import { Answer, AnswerDouble, Column } from "../kernel/abi.js";
import { budgetError } from "../kernel/kernel.js";
import { Status } from "../kernel/status.js";
import type { KernelProgram } from "../plugins/worker-selection/kernel-policy.js";
import { type Binding, isWithin } from "./binding.js";
import { type Constraints, emptyOutcome, exclusionOf, outcomeError, pinOutcome } from "./eligibility.js";
import type { ScoredCandidates } from "./policy/policy-run.js";
import type { Explanation, Pool } from "./pool.js";

/** Room for the terms of one row, as doubles (assembly/select/decide.ts). */
const TERMS = 10;

/** The error for a status below 0 of a decision. */
export function refusalOf(
  pool: Pool,
  status: number,
  constraints: Constraints | undefined,
  binding: Binding | undefined,
): WarmrouteError {
  if (status === Status.memoryBudget) return budgetError("another booking");
  if (status === Status.allFiltered) return outcomeError("all_eligible_workers_filtered", pool.policy.label);
  if (binding?.by === "pinned") {
    const { workerId, dpRank } = binding;
    const outcome = pinOutcome(workerId, pool.ranks.get(workerId, dpRank!), constraints);
    return outcomeError(outcome === "selected" ? "no_endpoints" : outcome);
  }
  return outcomeError(emptyOutcome(pool.ranks, constraints));
}

/**
 * The last decision as a value. Throws only for a lack of memory. `candidates` are those of a selected one; `kept` are
 * the rows that the policy's filters left, if it has any.
 */
export function explainDecision(
  pool: Pool,
  status: number,
  constraints: Constraints | undefined,
  binding: Binding | undefined,
  candidates: () => Candidate[],
  kept?: ReadonlySet<number>,
): Explanation {
  const excluded = excludedOf(pool, constraints, binding, kept);
  if (status < 0) {
    if (status === Status.memoryBudget) throw budgetError("another booking");
    const outcome = refusalOf(pool, status, constraints, binding).code as Outcome;
    return { outcome, selected: null, candidates: [], excluded };
  }
  const { workerId, dpRank } = pool.ranks.at(pool.kernel.answer[Answer.slot]!);
  return { outcome: "selected", selected: { workerId, dpRank }, candidates: candidates(), excluded };
}

/** Every eligible rank of the program's last decision, in row order; of a bound request only what it is bound to. */
export function programCandidates(
  pool: Pool,
  program: KernelProgram,
  constraints: Constraints | undefined,
  binding: Binding | undefined,
): Candidate[] {
  const { kernel } = pool;
  const isOnly = binding?.slot !== undefined;
  if (!isOnly) kernel.exports.explainProbabilities();
  const costs = kernel.column(Column.cost);
  const probabilities = kernel.column(Column.probability);
  const out: Candidate[] = [];
  let row = 0;
  for (const rank of pool.ranks) {
    if (isWithin(rank, binding) && exclusionOf(rank, constraints) === undefined) {
      out.push({
        workerId: rank.workerId,
        dpRank: rank.dpRank,
        ...(program.hasCosts ? { cost: isOnly ? kernel.answerDoubles[AnswerDouble.cost]! : costs[row]! } : {}),
        probability: isOnly ? 1 : probabilities[row]!,
        terms: program.terms(kernel.f64(kernel.exports.explainTerms(row), TERMS)),
      });
    }
    row++;
  }
  return out;
}

/** The candidates of components: what each scorer gave, and the sum; without scorers there is no cost. */
export function scoredCandidates(pool: Pool, { rows, totals, contributions }: ScoredCandidates): Candidate[] {
  const ranks = [...pool.ranks];
  return Array.from(rows, (row, i) => {
    const { workerId, dpRank } = ranks[row]!;
    const terms = Object.fromEntries(contributions.map((costs, k) => [`scorer_${k}`, costs[i]!]));
    return { workerId, dpRank, ...(contributions.length > 0 ? { cost: totals[i]! } : {}), terms };
  });
}

function excludedOf(
  pool: Pool,
  constraints: Constraints | undefined,
  binding: Binding | undefined,
  kept: ReadonlySet<number> | undefined,
): Excluded[] {
  const out: Excluded[] = [];
  let row = 0;
  for (const rank of pool.ranks) {
    let reason = exclusionOf(rank, constraints);
    if (!reason && !isWithin(rank, binding)) reason = "not_pinned";
    if (!reason && kept && !kept.has(row)) reason = "filtered";
    if (reason) out.push({ workerId: rank.workerId, dpRank: rank.dpRank, reason });
    row++;
  }
  return out;
}
