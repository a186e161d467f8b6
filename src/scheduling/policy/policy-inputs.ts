import { WarmrouteError } from "../../core/errors.js";
import { reasonOf } from "../../core/foreign.js";
import { describe } from "../../core/ids.js";
import { WorkerInputs } from "../../plugins/worker-selection/components.js";
import type { WorkerSelectionPolicy } from "../../plugins/worker-selection/policy.js";

const everything = Object.values(WorkerInputs).reduce<number>((all, one) => all | one, 0);

/**
 * What each filter requires, and each of the scorers followed by the picker. Throws `invalid_plugin` for components
 * that lack their method or require what is no input.
 */
export function inputsOf(policy: WorkerSelectionPolicy): { filters: WorkerInputs[]; choice: WorkerInputs[] } {
  const { filters, scorers, picker } = policy;
  return {
    filters: filters.map((filter, i) => read(policy, `filter ${i}`, filter, "keep")),
    choice: [
      ...scorers.map((scorer, i) => read(policy, `scorer ${i}`, scorer, "score")),
      read(policy, "picker", picker, "pick"),
    ],
  };
}

function read(policy: WorkerSelectionPolicy, what: string, component: unknown, method: string): WorkerInputs {
  const invalid = (fault: string, cause?: unknown) =>
    new WarmrouteError("invalid_plugin", `the ${what} of the policy ${describe(policy.label)} ${fault}`, { cause });
  const found = component as Record<string, unknown> | null | undefined;
  let act: unknown;
  let inputs: unknown;
  try {
    act = found?.[method];
    inputs = found?.requiredInputs;
  } catch (cause) {
    throw invalid(`cannot be read: ${reasonOf(cause)}`, cause);
  }
  if (typeof act !== "function") throw invalid(`has no ${method}()`);
  if (inputs === undefined) return WorkerInputs.NONE;
  // Beyond 32 bits `&` sees only the lowest.
  const isNumber = typeof inputs === "number" && Number.isInteger(inputs) && inputs >= 0 && inputs <= everything;
  if (isNumber && ((inputs as number) & ~everything) === 0) return inputs as number;
  throw invalid(`requires ${describe(inputs)}, which is no set of WorkerInputs`);
}
