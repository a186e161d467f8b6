import { WarmrouteError } from "../core/errors.js";
import { checkFields, fieldsOf } from "../core/fields.js";
import { describe, shortened, workerIdString } from "../core/ids.js";
import type { Exclusion, Outcome } from "../core/types.js";
import type { PoolRank } from "./ranks.js";

/** An outcome without a worker. */
export type EmptyOutcome = Exclude<Outcome, "selected">;

/** The constraints of one request, checked and ready to test ranks against. */
export interface Constraints {
  readonly allowed: ReadonlySet<string> | undefined;
  readonly required: readonly string[];
  readonly preferred: readonly (readonly [taint: string, weight: number])[];
  /** The adapter that the request needs. */
  readonly lora: string | undefined;
}

export interface ConstraintInput {
  loraName?: string;
  allowedWorkerIds?: readonly unknown[];
  routingConstraints?: {
    requiredTaints?: readonly string[];
    preferredTaints?: Readonly<Record<string, number>>;
  };
}

const constraintFields = fieldsOf<NonNullable<ConstraintInput["routingConstraints"]>>({
  requiredTaints: "list",
  preferredTaints: "object",
});

/**
 * Reads the constraints of a request; undefined when there are none. The adapter is one where any of the pool's workers
 * lists its own. Throws `invalid_request`.
 */
export function readConstraints(
  input: ConstraintInput,
  { listsLoras }: { listsLoras: boolean },
): Constraints | undefined {
  const { allowedWorkerIds, routingConstraints } = input;
  const lora = listsLoras ? input.loraName : undefined;
  if (allowedWorkerIds === undefined && routingConstraints === undefined && !lora) return undefined;
  if (routingConstraints !== undefined) {
    checkFields(routingConstraints, constraintFields, "routingConstraints", "invalid_request", "routingConstraints.");
  }
  const { requiredTaints: required = [], preferredTaints = {} } = routingConstraints ?? {};
  if (!Array.from(required).every((taint) => typeof taint === "string")) {
    const path = "routingConstraints.requiredTaints";
    throw new WarmrouteError("invalid_request", `${path} must be a list of strings`, { path });
  }
  const allowed =
    allowedWorkerIds &&
    new Set(Array.from(allowedWorkerIds, (id, i) => workerIdString(id, `allowedWorkerIds[${i}]`, "invalid_request")));
  const preferred = Object.entries(preferredTaints);
  for (const [taint, weight] of preferred) {
    if (typeof weight !== "number" || !Number.isFinite(weight)) {
      const path = `routingConstraints.preferredTaints.${taint}`;
      throw new WarmrouteError(
        "invalid_request",
        `${shortened(path)} must be a finite number, not ${describe(weight)}`,
        { path },
      );
    }
  }
  return { allowed, required, preferred, lora };
}

/** Why a rank may not take the request, in the order of spec scheduling.md §3.2; undefined when it may. */
export function exclusionOf(rank: PoolRank, constraints: Constraints | undefined): Exclusion | undefined {
  if (constraints && !isAllowed(rank, constraints)) return "not_allowed";
  if (!rank.available) return "not_available";
  if (constraints) {
    for (const taint of constraints.required) if (!rank.record.taints.includes(taint)) return "missing_taint";
  }
  return rank.overloaded ? "overloaded" : undefined;
}

/** A worker that lists its adapters takes no request for another one: as if the caller had not allowed it. */
function isAllowed({ workerId, record: { loras } }: PoolRank, { allowed, lora }: Constraints): boolean {
  return (!allowed || allowed.has(workerId)) && (!lora || !loras || loras.includes(lora));
}

/** Σ weights of the preferred taints that a rank carries. */
export function preferenceOf(rank: PoolRank, constraints: Constraints): number {
  let sum = 0;
  for (const [taint, weight] of constraints.preferred) if (rank.record.taints.includes(taint)) sum += weight;
  return sum;
}

/** The outcome of a pin: `selected` when its rank may take the request. */
export function pinOutcome(
  workerId: string,
  rank: PoolRank | undefined,
  constraints: Constraints | undefined,
): Outcome {
  if (constraints?.allowed && !constraints.allowed.has(workerId)) return "pinned_worker_not_allowed";
  if (!rank) return "no_endpoints";
  const exclusion = exclusionOf(rank, constraints);
  if (exclusion === "not_allowed") return "pinned_worker_not_allowed";
  if (exclusion === "overloaded") return "pinned_worker_overloaded";
  return exclusion ? "no_endpoints" : "selected";
}

/** The outcome when no rank is eligible: overloaded if one would be without its overload. */
export function emptyOutcome(ranks: Iterable<PoolRank>, constraints: Constraints | undefined): EmptyOutcome {
  for (const rank of ranks) {
    if (exclusionOf(rank, constraints) === "overloaded") return "all_eligible_workers_overloaded";
  }
  return "no_endpoints";
}

const messages: Record<EmptyOutcome, string> = {
  no_endpoints: "no worker may serve this request",
  all_eligible_workers_overloaded: "every worker that may serve this request is overloaded",
  all_eligible_workers_filtered: "the policy filtered out every worker that may serve this request",
  pinned_worker_not_allowed: "the pinned worker is not among the allowed ones",
  pinned_worker_overloaded: "the pinned worker is overloaded",
};

/** The typed error of an empty outcome; `policy` is the label of the policy whose filters made it. */
export function outcomeError(outcome: EmptyOutcome, policy?: string): WarmrouteError {
  if (policy === undefined) return new WarmrouteError(outcome, messages[outcome]);
  return new WarmrouteError(outcome, messages[outcome].replace("the policy", `the policy ${describe(policy)}`), {
    details: { policy },
  });
}
