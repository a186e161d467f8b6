// The `warmroute/plugins` entry: what authors of plugins import. The main entry has the same names.
export type { Logger } from "./core/log.js";
export { RouterPlugins } from "./plugins/bundle.js";
export type { ParameterIssue, ParameterSchema, PluginParameters } from "./plugins/parameters.js";
export type * from "./plugins/policy/contract.js";
export { parsePolicy } from "./plugins/policy/parse.js";
export {
  type Catalog,
  createRegistry,
  RouterPluginRegistry,
  WorkerSelectionPolicyRegistry,
} from "./plugins/registry.js";
export type * from "./plugins/request-classifier/contract.js";
export * from "./plugins/worker-selection/components.js";
export type * from "./plugins/worker-selection/contract.js";
export { lowestCost } from "./plugins/worker-selection/lowest-cost.js";
export { perRow } from "./plugins/worker-selection/per-row.js";
export { WorkerSelectionPolicy, type WorkerSelectionPolicyOptions } from "./plugins/worker-selection/policy.js";
