import { WarmrouteError } from "../core/errors.js";
import { describe } from "../core/ids.js";
import { WorkerInputs } from "../plugins/worker-selection/components.js";
import type { WorkerSelectionPolicy } from "../plugins/worker-selection/policy.js";

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
  const of = `the ${what} of the policy ${describe(policy.label)}`;
  const found = component as Record<string, unknown> | null | undefined;
  if (typeof found?.[method] !== "function") throw new WarmrouteError("invalid_plugin", `${of} has no ${method}()`);
  const { requiredInputs = WorkerInputs.NONE } = found;
  if (typeof requiredInputs === "number" && Number.isInteger(requiredInputs) && (requiredInputs & ~everything) === 0) {
    return requiredInputs;
  }
  throw new WarmrouteError(
    "invalid_plugin",
    `${of} requires ${describe(requiredInputs)}, which is no set of WorkerInputs`,
  );
}
