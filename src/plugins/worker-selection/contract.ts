// How worker-selection policies come to be: provider → factory → policy.
import type { KvRouterConfig } from "../../core/config.js";
import type { Logger } from "../../core/log.js";
import type { RoutingPartition, WorkerRole } from "../../core/types.js";
import type { PluginParameters } from "../parameters.js";
import type { WorkerSelectionPolicy } from "./policy.js";

export * from "./components.js";

/** What a factory is told of the pool that it makes a policy for. */
export interface WorkerSelectionInit {
  readonly config: KvRouterConfig;
  readonly role: WorkerRole;
  readonly partition: RoutingPartition;
  /** The pool's seeded generator. */
  random(): number;
  /** Milliseconds of a monotonic clock. */
  now(): number;
  readonly log: Logger;
}

/** Called once for each (model, group, role). */
export type WorkerSelectionFactory = (init: WorkerSelectionInit) => WorkerSelectionPolicy;

/** Called once for each selected instance of the policy file. */
export type WorkerSelectionProvider = (parameters: PluginParameters) => WorkerSelectionFactory;
