// The policy file, parsed: which plugins run, and the classes that requests queue in.
import type { WorkerRole } from "../../core/types.js";
import type { SingleKindName } from "../kinds.js";

/** Where something stands in the policy file: a path as `a.b[0]`, and a 1-based position where a file was read. */
export interface Place {
  readonly path: string;
  readonly line?: number;
  readonly column?: number;
}

/** A plugin that the file names. */
export interface PluginSpec {
  readonly type: string;
  /** Frozen; `{}` when the file gives none. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** The place of `type`'s value. */
  readonly typeAt: Place;
  /** The place of a key or value below `parameters`; of the nearest thing that exists, when it does not. */
  parameterAt(path: readonly PropertyKey[], of: "key" | "value"): Place;
}

export interface WorkerSelectionInstance extends PluginSpec {
  readonly name: string;
}

export interface WorkerSelectionSection {
  /** An instance name or `default` for each role that the file names. */
  readonly roles: Readonly<Partial<Record<WorkerRole, string>>>;
  /** The place of each role's value. */
  readonly roleAt: Readonly<Partial<Record<WorkerRole, Place>>>;
  readonly instances: readonly WorkerSelectionInstance[];
}

export type QueuePolicy = "fcfs" | "wspt" | "lcfs";

/** One class of requests, and how it queues (spec: plugins.md §2.4). */
export interface PolicyClass {
  readonly name: string;
  /** Both or neither: without them the class is explicit, and chosen by its name only. */
  readonly policyFamily?: string;
  readonly cacheBucket?: string;
  readonly queuePolicy: QueuePolicy;
  /** Credit a round, in uncached tokens. */
  readonly quantum: number;
  /** A rank with more active prefill tokens is busy for this class. */
  readonly prefillBusyThreshold?: number;
  /** The same as a share of the rank's `maxNumBatchedTokens`. */
  readonly prefillBusyThresholdFrac?: number;
  readonly requestQueueLimitPerWorker?: number;
  readonly rawIslTokenQueueLimitPerWorker?: number;
  readonly cachedTokenQueueLimitPerWorker?: number;
}

/** What a model's requests are sorted into. */
export interface PolicyProfile {
  readonly defaultPolicyFamily: string;
  /** By `minTokens`, rising, the first 0. */
  readonly uncachedIslBuckets: readonly { readonly minTokens: number; readonly bucket: string }[];
  readonly policyClasses: readonly PolicyClass[];
}

/** The queue profiles of a policy file. */
export interface PolicyProfiles {
  /** For every model that `models` does not name. */
  readonly profile?: PolicyProfile;
  readonly models: ReadonlyMap<string, PolicyProfile>;
}

/** The sections that name one plugin, by kind: `requestClassifier` is one. */
type SingleSections = { readonly [K in SingleKindName]?: PluginSpec };

/** A checked policy file; made by `parsePolicy` only. */
export interface RouterPolicy extends PolicyProfiles, SingleSections {
  readonly file?: string;
  readonly workerSelection?: WorkerSelectionSection;
}
