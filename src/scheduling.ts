// The `warmroute/scheduling` entry: where policies were imported from before `warmroute/plugins` existed.
import {
  perRow as perRowOfPlugins,
  RouterPluginRegistry,
  WorkerInputs as WorkerInputsOfPlugins,
  WorkerSelectionPolicy as WorkerSelectionPolicyOfPlugins,
} from "./plugins.js";

/** @deprecated Import from `warmroute/plugins`; removed in 1.7. */
export const WorkerSelectionPolicy = WorkerSelectionPolicyOfPlugins;
/** @deprecated Import from `warmroute/plugins`; removed in 1.7. */
export type WorkerSelectionPolicy = WorkerSelectionPolicyOfPlugins;
/** @deprecated Import from `warmroute/plugins`; removed in 1.7. */
export const WorkerInputs: typeof WorkerInputsOfPlugins = WorkerInputsOfPlugins;
/** @deprecated Import from `warmroute/plugins`; removed in 1.7. */
export type WorkerInputs = WorkerInputsOfPlugins;
/** @deprecated Import from `warmroute/plugins`; removed in 1.7. */
export const perRow = perRowOfPlugins;
/** @deprecated Use `RouterPluginRegistry` of `warmroute/plugins`; removed in 1.7. */
export const WorkerSelectionPolicyRegistry = RouterPluginRegistry;
/** @deprecated Use `RouterPluginRegistry` of `warmroute/plugins`; removed in 1.7. */
export type WorkerSelectionPolicyRegistry = RouterPluginRegistry;
export type {
  CandidateView,
  ScoredView,
  SelectionContext,
  WorkerFilter,
  WorkerPicker,
  WorkerScorer,
  WorkerSelectionFactory,
  WorkerSelectionInit,
  WorkerSelectionProvider,
} from "./plugins.js";
export { RouterPluginRegistry };
