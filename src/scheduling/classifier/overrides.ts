// What a classifier changed of a request, and the refusal of what it may not.
import { parseU32, workerIdString } from "../../core/ids.js";
import type { PolicyClasses } from "../queue/policy-class.js";
import { refusedAnswer } from "./faults.js";

/** What a classifier set; an absent field leaves the caller's value. */
export interface ClassifyOverrides {
  /** An explicit class or a family of the profile. */
  readonly policyClass?: string;
  /** On the router's monotonic clock. */
  readonly dueAtMs?: number;
  /** Stands for the uncached tokens in queueing, not in the load that is booked. */
  readonly schedulingCostTokens?: number;
  /** Replaces the session's affinity target; `null`: there is none. Never set for a pinned request. */
  readonly target?: { readonly workerId: string; readonly dpRank?: number } | null;
  readonly strictPriority?: number;
  /** Seconds. */
  readonly priorityJump?: number;
}

/** Of a classifier that changed nothing. */
export const noOverrides: ClassifyOverrides = Object.freeze({});

/**
 * Checks what a plugin set, whatever its types say, in the order of spec plugins.md §5.4.
 * Throws `invalid_classification_metadata`.
 */
export function checkOverrides(overrides: ClassifyOverrides, classes: PolicyClasses): void {
  const { schedulingCostTokens: cost, target, policyClass, dueAtMs, strictPriority, priorityJump } = overrides;
  if (cost !== undefined && !(Number.isSafeInteger(cost) && cost >= 1)) {
    throw refusedAnswer("the scheduling cost is not a whole number of at least 1");
  }
  if (target) checkTarget(target);
  if (policyClass !== undefined && !classes.has(policyClass)) {
    throw refusedAnswer(`the policy class is none that requests may use: ${classes.names.join(", ")}`);
  }
  if (dueAtMs !== undefined && !Number.isFinite(dueAtMs)) throw refusedAnswer("the due time is not a finite number");
  if (strictPriority !== undefined && !isU32(strictPriority)) {
    throw refusedAnswer("the strict priority is not an integer from 0 to 4294967295");
  }
  if (priorityJump !== undefined && !Number.isFinite(priorityJump)) {
    throw refusedAnswer("the priority jump is not a finite number");
  }
}

const isU32 = (value: number) => Number.isInteger(value) && value >= 0 && value <= 0xffffffff;

function checkTarget({ workerId, dpRank }: { workerId: string; dpRank?: number }): void {
  try {
    workerIdString(workerId);
    if (dpRank !== undefined) parseU32(dpRank, "dpRank");
  } catch {
    // What these say quotes the value.
    throw refusedAnswer("the worker selection target is no worker id with a rank");
  }
}
