import type { Logger } from "../../core/log.js";
import type { WorkerSelectionPolicy } from "../../plugins/worker-selection/policy.js";

/** Tells a policy that its pool is gone. Never throws: what the policy throws is logged. */
export async function closePolicy(policy: WorkerSelectionPolicy, log: Logger): Promise<void> {
  try {
    await policy.close?.();
  } catch (error) {
    log.error("a worker-selection policy failed to close", { policy: policy.label, error });
  }
}
