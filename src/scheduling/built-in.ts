import type { Kernel } from "../kernel/kernel.js";

/** The policies that run inside the kernel. */
export type BuiltInPolicy = "dynamo-default-cost-fn" | "dynamo-two-tier-cost-fn";

/** Numbers of the policies in the request row (assembly/select/decide.ts). */
export const policyNumber: Record<BuiltInPolicy, number> = {
  "dynamo-default-cost-fn": 0,
  "dynamo-two-tier-cost-fn": 1,
};

/** Parameters of the two-tier policy (spec: plugins.md §4.3). */
export interface TwoTierParameters {
  cacheThreshold: number;
  balanceAbsThreshold: number;
  balanceRelThreshold: number;
}

const defaultTerms = [
  "raw_prefill_blocks",
  "decay",
  "device_credit",
  "host_credit",
  "disk_credit",
  "shared_credit",
  "prefill_cost",
  "decode_blocks",
  "active_request_cost",
  "taint_multiplier",
] as const;
const branches = ["imbalanced", "cached", "least_loaded"] as const;

/** The terms of one row's cost, as the kernel computed them for the last decision. */
export function explainedTerms(policy: BuiltInPolicy, kernel: Kernel, row: number): Record<string, number | string> {
  const values = kernel.f64(kernel.exports.explainTerms(row), defaultTerms.length);
  if (policy === "dynamo-two-tier-cost-fn") {
    return { active_requests: values[0]!, device_overlap_blocks: values[1]!, branch: branches[values[2]!]! };
  }
  return Object.fromEntries(defaultTerms.map((name, i) => [name, values[i]!]));
}
