import { FrozenSet } from "../core/frozen-map.js";
import type { WorkerRole } from "../core/types.js";
import type { PolicyProfiles } from "./policy/contract.js";
import type { RequestClassifierFactory } from "./request-classifier/contract.js";
import type { WorkerSelectionFactory } from "./worker-selection/contract.js";

/** The parts of a bundle. */
export interface RouterPluginParts {
  readonly workerSelection?: WorkerSelectionFactory | undefined;
  /** Roles that the policy file, or an override of that one role, chose a policy for. */
  readonly customRoles?: ReadonlySet<WorkerRole>;
  readonly requestClassifier?: RequestClassifierFactory | undefined;
  /** The policy file's queue profiles; no plugin, so a bundle of profiles alone is empty. */
  readonly profiles?: PolicyProfiles | undefined;
}

/** What a router is built with: factories, resolved once for the process. Immutable, and shared by all routers. */
export class RouterPlugins {
  readonly workerSelection: WorkerSelectionFactory | undefined;
  readonly customRoles: ReadonlySet<WorkerRole>;
  readonly requestClassifier: RequestClassifierFactory | undefined;
  readonly profiles: PolicyProfiles | undefined;

  constructor(parts: RouterPluginParts = {}) {
    this.workerSelection = parts.workerSelection;
    this.customRoles = new FrozenSet(parts.customRoles ?? []);
    this.requestClassifier = parts.requestClassifier;
    this.profiles = parts.profiles && Object.freeze(parts.profiles);
    Object.freeze(this);
  }

  /** The same bundle with this factory for every role. */
  withWorkerSelection(factory: WorkerSelectionFactory): RouterPlugins {
    return new RouterPlugins({ ...this, workerSelection: factory, customRoles: new Set() });
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
