// The kinds of plugin. Another kind takes three additions, and no more: its entry in `pluginKinds`, the field of the
// same name in bundle.ts, and the hook in src/router/ that builds with what that field holds. From the entry follow
// the registry's map and checks, the section of the policy file, what resolves and what `warmroute check` prints.
import type { PluginParameters } from "./parameters.js";
import type { RequestClassifierFactory } from "./request-classifier/contract.js";
import type { WorkerSelectionFactory } from "./worker-selection/contract.js";

/** What all code about plugins knows of a kind; `Factory` is what its providers make. */
export interface PluginKind<Factory> {
  /** Names one in messages. */
  readonly noun: string;
  /** Its key in the policy file, and in the answers of the command line. */
  readonly section: string;
  /** Whether the section names one plugin for the process, or one for each role. */
  readonly isSingle: boolean;
  /** Never set: it carries the type. */
  readonly factory?: Factory;
}

interface SingleKind<Factory> extends PluginKind<Factory> {
  readonly isSingle: true;
}

/** A kind whose section is `type` and `parameters` of the one plugin that runs. */
const single = <Factory>(noun: string, section: string): SingleKind<Factory> => ({ noun, section, isSingle: true });

const forEachRole = <Factory>(noun: string, section: string) =>
  ({ noun, section, isSingle: false }) as PluginKind<Factory> & { readonly isSingle: false };

export const pluginKinds = {
  workerSelection: forEachRole<WorkerSelectionFactory>("worker-selection policy", "worker_selection"),
  requestClassifier: single<RequestClassifierFactory>("request classifier", "request_classifier"),
};

export type KindName = keyof typeof pluginKinds;
export type SingleKindName = {
  [K in KindName]: (typeof pluginKinds)[K] extends { readonly isSingle: true } ? K : never;
}[KindName];

export type Factories = { [K in KindName]: NonNullable<(typeof pluginKinds)[K]["factory"]> };
export type FactoryOf<K extends KindName> = Factories[K];
export type ProviderOf<K extends KindName> = (parameters: PluginParameters) => FactoryOf<K>;

export const kindNames = Object.keys(pluginKinds) as KindName[];
export const singleKinds = kindNames.filter((name) => pluginKinds[name].isSingle) as SingleKindName[];
