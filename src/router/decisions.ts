// What the decision log keeps of a request.
import { WarmrouteError } from "../core/errors.js";
import type { Decision, Selection, SelectRequest } from "./contract.js";

/** A request that got a worker. */
export function decided(selection: Selection, atMs: number): Decision {
  const { requestId, worker, overlap, cachedTokens, effectivePrefillTokens, evidence, reason } = selection;
  const { policy, policyClass, queueWaitMs, tieDraw, candidates } = selection;
  return Object.freeze({
    ...{ atMs, requestId, outcome: "selected" },
    selected: Object.freeze({
      ...{ worker, overlap, cachedTokens, effectivePrefillTokens, evidence, reason },
      ...{ policy, policyClass, queueWaitMs },
      ...(tieDraw !== undefined && { tieDraw }),
      ...(candidates && { candidates }),
    }),
  });
}

/** A request that got none. */
export function undecided({ requestId }: SelectRequest, error: unknown, atMs: number): Decision {
  const outcome = error instanceof WarmrouteError ? error.code : "aborted";
  return Object.freeze({ atMs, ...(requestId !== undefined && { requestId }), outcome });
}
