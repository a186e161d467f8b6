import type { CandidateView } from "../plugins/worker-selection/components.js";
import { KernelPolicy } from "../plugins/worker-selection/kernel-policy.js";
import { WorkerSelectionPolicy } from "../plugins/worker-selection/policy.js";

/** What all typed arrays inherit from. */
const TypedArray = Object.getPrototypeOf(Uint8Array) as typeof Uint8Array;

/** Copying all columns at every call is quadratic for filters, so large pools go unwatched. */
const MOST_ROWS = 64;

/**
 * The same policy, whose components throw when they change what they are lent to read: columns are shared, and the
 * components after them would see it. What is no policy, or has no components, stays as it is.
 */
export function watchedPolicy(policy: WorkerSelectionPolicy): WorkerSelectionPolicy {
  if (!(policy instanceof WorkerSelectionPolicy) || policy instanceof KernelPolicy) return policy;
  const { label, filters, scorers, picker, exclusiveAffinity, onSlotReleased, close } = policy;
  return new WorkerSelectionPolicy({
    label,
    filters: filters.map((filter) => watched(filter, "keep")),
    scorers: scorers.map((scorer) => watched(scorer, "score")),
    picker: watched(picker, "pick"),
    exclusiveAffinity,
    ...(onSlotReleased && { onSlotReleased }),
    ...(close && { close }),
  });
}

/** A component without its method is for the router to refuse. */
function watched<T extends { readonly requiredInputs?: number }>(component: T, method: keyof T & string): T {
  const act = (component as T | undefined)?.[method];
  if (typeof act !== "function") return component;
  const watching = (ctx: unknown, rows: CandidateView, ...more: unknown[]) => {
    const before = rows.length <= MOST_ROWS ? new Map(valuesIn(rows)) : undefined;
    const answer: unknown = act.call(component, ctx, rows, ...more);
    if (before) assertSame(before, new Map(valuesIn(rows)));
    return answer;
  };
  return {
    get requiredInputs() {
      return component.requiredInputs;
    },
    [method]: watching,
  } as T;
}

function assertSame(before: ReadonlyMap<string, readonly unknown[]>, after: ReadonlyMap<string, readonly unknown[]>) {
  for (const [name, values] of before) {
    const now = after.get(name);
    const at = values.findIndex((value, row) => !Object.is(value, now?.[row]));
    if (at < 0) continue;
    const change = `rows.${name}, row ${at}, from ${values[at]} to ${now?.[at]}`;
    throw new Error(`it changed ${change}: the components after it share the columns, so change a copy (slice())`);
  }
}

/** Everything in a view by its path, copied. Costs are the picker's own: nobody reads them after it. */
function* valuesIn(view: object, path = ""): Generator<[string, unknown[]]> {
  for (const [key, value] of Object.entries(view)) {
    const name = path + key;
    if (name === "costs") continue;
    if (typeof value !== "object") yield [name, [value]];
    // A guarded column is a proxy, which is no view to ArrayBuffer.isView.
    else if (value instanceof TypedArray) yield [name, [...value]];
    else yield* valuesIn(value, `${name}.`);
  }
}
