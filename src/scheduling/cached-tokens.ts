import { CandidateColumn } from "../kernel/abi.js";
import { WorkerInputs } from "../plugins/worker-selection/components.js";
import { bindingOf } from "./binding.js";
import { readConstraints } from "./eligibility.js";
import type { Pool, PoolRequest } from "./pool.js";
import { writeRequest } from "./request.js";

/**
 * Prompt tokens that the best of the eligible ranks has cached, tiers weighted, at most the prompt's own (spec:
 * plugins.md §2.4). 0 where no rank is eligible, and in a pool without an index. Throws as `writeRequest` does.
 */
export function bestCachedTokens(pool: Pool, request: PoolRequest): number {
  const { kernel } = pool;
  const constraints = readConstraints(request, pool.ranks);
  writeRequest(pool, request, constraints, bindingOf(pool, request, undefined, constraints), 0);
  if (!pool.usesIndex) return 0;
  const n = kernel.exports.prepare(WorkerInputs.CACHE);
  if (n < 0) return 0;
  kernel.sync();
  const cached = kernel.f64(kernel.exports.candidateColumn(CandidateColumn.estimatedTokens), n);
  let best = 0;
  for (let row = 0; row < n; row++) best = Math.max(best, cached[row]!);
  kernel.exports.abandon();
  return Math.min(best, request.tokens.length);
}
