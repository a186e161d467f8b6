// Putting a decision into words: outcomes, candidates with their terms, and why ranks were left out.
import type { WarmrouteError } from "../core/errors.js";
import { workerIdString } from "../core/ids.js";
import type { Candidate, Excluded, Outcome } from "../core/types.js";
import { Answer, AnswerDouble, Column } from "../kernel/abi.js";
import { budgetError } from "../kernel/kernel.js";
import { Status } from "../kernel/status.js";
import { explainedTerms } from "./built-in.js";
import { type Constraints, emptyOutcome, exclusionOf, outcomeError, pinOutcome } from "./eligibility.js";
import type { Explanation, Pool, PoolRequest } from "./pool.js";

type Pinnable = Pick<PoolRequest, "pinnedWorker">;

/** The error for a status below 0 of the kernel's decision. */
export function refusalOf(
  pool: Pool,
  status: number,
  request: Pinnable,
  constraints: Constraints | undefined,
): WarmrouteError {
  if (status === Status.memoryBudget) return budgetError("another booking");
  if (request.pinnedWorker) {
    const id = workerIdString(request.pinnedWorker.workerId, "pinnedWorker.workerId");
    const outcome = pinOutcome(id, pool.ranks.get(id, request.pinnedWorker.dpRank ?? 0), constraints);
    return outcomeError(outcome === "selected" ? "no_endpoints" : outcome);
  }
  return outcomeError(emptyOutcome(pool.ranks, constraints));
}

/** The last decision as a value; its columns are released. Throws only for a lack of memory. */
export function explainDecision(
  pool: Pool,
  status: number,
  request: Pinnable,
  constraints: Constraints | undefined,
): Explanation {
  const { kernel } = pool;
  kernel.sync();
  try {
    const excluded = excludedOf(pool, request, constraints);
    if (status < 0) {
      const refusal = refusalOf(pool, status, request, constraints);
      if (status !== Status.noCandidate) throw refusal;
      return { outcome: refusal.code as Outcome, selected: null, candidates: [], excluded };
    }
    const { workerId, dpRank } = pool.ranks.at(kernel.answer[Answer.slot]!);
    const candidates = candidatesOf(pool, request, constraints);
    return { outcome: "selected", selected: { workerId, dpRank }, candidates, excluded };
  } finally {
    if (!kernel.failed) kernel.exports.releaseColumns();
  }
}

/** Every eligible rank of the last decision in row order; of a pinned request only its rank. */
export function candidatesOf(pool: Pool, request: Pinnable, constraints: Constraints | undefined): Candidate[] {
  const { kernel } = pool;
  const pinned = request.pinnedWorker !== undefined;
  if (!pinned) kernel.exports.explainProbabilities();
  const costs = kernel.column(Column.cost);
  const probabilities = kernel.column(Column.probability);
  const scored = pool.policy === "dynamo-default-cost-fn";
  const chosenRow = kernel.answer[Answer.row]!;
  const out: Candidate[] = [];
  let row = 0;
  for (const rank of pool.ranks) {
    const eligible = pinned ? row === chosenRow : exclusionOf(rank, constraints) === undefined;
    if (eligible) {
      out.push({
        workerId: rank.workerId,
        dpRank: rank.dpRank,
        ...(scored ? { cost: pinned ? kernel.answerDoubles[AnswerDouble.cost]! : costs[row]! } : {}),
        probability: pinned ? 1 : probabilities[row]!,
        terms: explainedTerms(pool.policy, kernel, row),
      });
    }
    row++;
  }
  return out;
}

function excludedOf(pool: Pool, { pinnedWorker }: Pinnable, constraints: Constraints | undefined): Excluded[] {
  const pinnedId = pinnedWorker && workerIdString(pinnedWorker.workerId, "pinnedWorker.workerId");
  const out: Excluded[] = [];
  for (const rank of pool.ranks) {
    const isPinned = rank.workerId === pinnedId && rank.dpRank === (pinnedWorker?.dpRank ?? 0);
    const reason = exclusionOf(rank, constraints) ?? (pinnedWorker && !isPinned ? "not_pinned" : undefined);
    if (reason) out.push({ workerId: rank.workerId, dpRank: rank.dpRank, reason });
  }
  return out;
}
