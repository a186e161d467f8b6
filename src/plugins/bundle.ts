import type { WorkerRole } from "../core/types.js";
import type { PolicyProfiles } from "./policy/contract.js";
import type { RequestClassifierFactory } from "./request-classifier/contract.js";
import type { WorkerSelectionFactory } from "./worker-selection/contract.js";

/** The parts of a bundle. */
export interface RouterPluginParts {
  readonly workerSelection?: WorkerSelectionFactory | undefined;
  /** Roles whose policy was chosen, as opposed to left to the default. */
  readonly customRoles?: ReadonlySet<WorkerRole>;
  readonly requestClassifier?: RequestClassifierFactory | undefined;
  /** The policy file's queue profiles; no plugin, so a bundle of profiles alone is empty. */
  readonly profiles?: PolicyProfiles | undefined;
}

const allRoles: ReadonlySet<WorkerRole> = new Set(["aggregated", "prefill", "decode", "encode"]);

/** What a router is built with: factories, resolved once for the process. Immutable, and shared by all routers. */
export class RouterPlugins {
  readonly workerSelection: WorkerSelectionFactory | undefined;
  readonly customRoles: ReadonlySet<WorkerRole>;
  readonly requestClassifier: RequestClassifierFactory | undefined;
  readonly profiles: PolicyProfiles | undefined;

  constructor(parts: RouterPluginParts = {}) {
    this.workerSelection = parts.workerSelection;
    this.customRoles = parts.customRoles ?? (parts.workerSelection ? allRoles : new Set());
    this.requestClassifier = parts.requestClassifier;
    this.profiles = parts.profiles;
  }

  /** The same bundle with this factory for every role. */
  withWorkerSelection(factory: WorkerSelectionFactory): RouterPlugins {
    return new RouterPlugins({ ...this, workerSelection: factory, customRoles: allRoles });
  }

  withRequestClassifier(factory: RequestClassifierFactory): RouterPlugins {
    return new RouterPlugins({ ...this, requestClassifier: factory });
  }

  /** Whether it holds no factory at all. */
  isEmpty(): boolean {
    return this.workerSelection === undefined && this.requestClassifier === undefined;
  }

  hasCustomWorkerSelection(): boolean {
    return this.workerSelection !== undefined;
  }

  hasCustomPlugins(): boolean {
    return this.hasCustomWorkerSelection() || this.requestClassifier !== undefined;
  }
}
