import { readRank } from "../core/rank.js";
import type { WorkerRank } from "../core/types.js";
import { type Constraints, exclusionOf, pinOutcome } from "./eligibility.js";
import type { Pool, PoolRequest } from "./pool.js";
import type { PoolRank } from "./ranks.js";

/** Where a session's state is; without a rank any rank of the worker will do. */
export interface AffinityTarget {
  readonly workerId: string;
  readonly dpRank?: number;
}

/** Where a request must go: by a pin of its caller, or by an affinity that its policy makes exclusive. */
export interface Binding {
  readonly by: "pinned" | "affinity";
  readonly workerId: string;
  /** The only rank, and its slot; undefined when several ranks of the worker may take the request. */
  readonly dpRank: number | undefined;
  readonly slot: number | undefined;
}

/** Reads where a request must go. Throws `invalid_request`. */
export function pinOf({ pinnedWorker }: Pick<PoolRequest, "pinnedWorker">): WorkerRank | undefined {
  if (pinnedWorker === undefined) return undefined;
  const { workerId, dpRank = 0 } = readRank(pinnedWorker, "pinnedWorker");
  return { workerId, dpRank };
}

/** Reads where a request would like to go. Throws `invalid_request`. */
export function affinityOf({ affinityTarget }: Pick<PoolRequest, "affinityTarget">): AffinityTarget | undefined {
  if (affinityTarget === undefined) return undefined;
  const { workerId, dpRank } = readRank(affinityTarget, "affinityTarget");
  return Object.freeze(dpRank === undefined ? { workerId } : { workerId, dpRank });
}

/**
 * Where a request must go; undefined when it is free. An affinity that is not soft binds if the policy is exclusive
 * and an eligible rank is meant, otherwise it changes nothing. Throws `invalid_request`.
 */
export function bindingOf(
  pool: Pool,
  request: Pick<PoolRequest, "pinnedWorker" | "softAffinity">,
  affinity: AffinityTarget | undefined,
  constraints: Constraints | undefined,
): Binding | undefined {
  const pin = pinOf(request);
  if (pin) {
    const { workerId, dpRank } = pin;
    const rank = pool.ranks.get(workerId, dpRank);
    const mayGo = pinOutcome(workerId, rank, constraints) === "selected";
    // The kernel finds no rank beyond the last slot, so a pin that is refused becomes an outcome like any other.
    return { by: "pinned", workerId, dpRank, slot: mayGo ? rank!.slot : pool.kernel.maxRanks };
  }
  if (affinity === undefined || request.softAffinity || !pool.policy.exclusiveAffinity) return undefined;
  const { workerId } = affinity;
  let only: PoolRank | undefined;
  for (const rank of pool.ranks.of(workerId)) {
    if (!isMeant(affinity, rank) || exclusionOf(rank, constraints)) continue;
    if (only) return { by: "affinity", workerId, dpRank: undefined, slot: undefined };
    only = rank;
  }
  return only && { by: "affinity", workerId, dpRank: only.dpRank, slot: only.slot };
}

/** Whether an affinity means a rank. */
export function isMeant({ workerId, dpRank }: AffinityTarget, rank: PoolRank): boolean {
  return rank.workerId === workerId && (dpRank === undefined || dpRank === rank.dpRank);
}

/** Whether a binding allows a rank. */
export function isWithin(rank: PoolRank, binding: Binding | undefined): boolean {
  if (!binding) return true;
  return rank.workerId === binding.workerId && (binding.dpRank === undefined || binding.dpRank === rank.dpRank);
}
