// Plugins by name: catalogs register providers, and a policy file's names are resolved with them.
import { WarmrouteError } from "../core/errors.js";
import { disown, isPromise, isWarmrouteError, reasonOf } from "../core/foreign.js";
import { describe, shortened } from "../core/ids.js";
import { type WorkerRole, workerRoles } from "../core/types.js";
import type { RouterPlugins } from "./bundle.js";
import { type KindName, kindNames, type ProviderOf, pluginKinds } from "./kinds.js";
import { DEFAULT, sortedNames } from "./names.js";
import type { ResolveOptions } from "./overrides.js";
import type { RouterPolicy } from "./policy/contract.js";
import type { RequestClassifierProvider } from "./request-classifier/contract.js";
import { type Providers, type Resolution, resolve } from "./resolve.js";
import { defaultSelection, registerBuiltIns } from "./worker-selection/built-in.js";
import type { WorkerSelectionFactory, WorkerSelectionProvider } from "./worker-selection/contract.js";

/**
 * The types that a policy file may name; each kind of plugin has names of its own. Filled at start-up, then only
 * read: no request looks anything up here.
 */
export class RouterPluginRegistry implements Providers {
  /** What roles without a chosen policy run beside others that have one. */
  readonly defaultSelection: WorkerSelectionFactory | undefined;
  readonly #providers = Object.fromEntries(kindNames.map((kind) => [kind, new Map()])) as {
    [K in KindName]: Map<string, ProviderOf<K>>;
  };

  /** An empty registry; `createRegistry` makes one with the types that ship. */
  constructor(options: { defaultSelection?: WorkerSelectionFactory } = {}) {
    this.defaultSelection = options.defaultSelection;
  }

  registerWorkerSelection(name: string, provider: WorkerSelectionProvider): void {
    this.registerPlugin("workerSelection", name, provider);
  }

  registerRequestClassifier(name: string, provider: RequestClassifierProvider): void {
    this.registerPlugin("requestClassifier", name, provider);
  }

  /** @deprecated Use `registerWorkerSelection`; removed in 1.7. */
  register(name: string, provider: WorkerSelectionProvider): void {
    this.registerWorkerSelection(name, provider);
  }

  /**
   * Registers a provider of any kind. Throws `empty_name`, `reserved_default`, `duplicate` or `invalid_plugin`, and
   * then has registered nothing.
   */
  registerPlugin<K extends KindName>(kind: K, name: string, provider: ProviderOf<K>): void {
    const { noun } = pluginKinds[kind];
    if (typeof name !== "string") {
      throw new WarmrouteError("invalid_plugin", `the name of a ${noun} must be a string, not ${describe(name)}`);
    }
    if (name === "") throw new WarmrouteError("empty_name", `a ${noun} needs a name`);
    if (name === DEFAULT) {
      const message = `no ${noun} can be registered as ${DEFAULT}, which stands for what runs without one`;
      throw new WarmrouteError("reserved_default", message, { details: { name } });
    }
    if (this.#providers[kind].has(name)) {
      throw new WarmrouteError("duplicate", `the ${noun} ${shortened(name)} is registered already`, {
        details: { name },
      });
    }
    if (typeof provider !== "function") {
      const message = `the provider of the ${noun} ${shortened(name)} must be a function, not ${describe(provider)}`;
      throw new WarmrouteError("invalid_plugin", message, { details: { name } });
    }
    this.#providers[kind].set(name, provider);
  }

  provider<K extends KindName>(kind: K, type: string): ProviderOf<K> | undefined {
    return this.#providers[kind].get(type);
  }

  /** The registered types of each kind, in the order of their bytes. */
  types(): Record<KindName, string[]> {
    return Object.fromEntries(kindNames.map((kind) => [kind, sortedNames(this.#providers[kind].keys())])) as Record<
      KindName,
      string[]
    >;
  }

  isEmpty(): boolean {
    return kindNames.every((kind) => this.#providers[kind].size === 0);
  }

  /**
   * The bundle of a policy file, or of none: once for the process, before any router is made. Throws the first
   * fault: `unknown_instance`, `unknown_type`, `provider`, `invalid_plugin`, `unreadable`, or what a plugin's
   * parameters have.
   */
  resolvePlugins(policy?: RouterPolicy, options: ResolveOptions = {}): RouterPlugins {
    return bundleOf(this.resolveAll(policy, options));
  }

  /** The same for a host with one role: what the other roles name is not looked at. */
  resolveForRole(policy: RouterPolicy | undefined, role: WorkerRole, options: ResolveOptions = {}): RouterPlugins {
    return bundleOf(resolve(this, policy, [role], options));
  }

  /** Everything that resolves and everything that does not. */
  resolveAll(policy?: RouterPolicy, options: ResolveOptions = {}): Resolution {
    return resolve(this, policy, workerRoles, options);
  }
}

/** @deprecated Use `RouterPluginRegistry`; removed in 1.7. */
export const WorkerSelectionPolicyRegistry = RouterPluginRegistry;
/** @deprecated Use `RouterPluginRegistry`; removed in 1.7. */
export type WorkerSelectionPolicyRegistry = RouterPluginRegistry;

type Register = (registry: RouterPluginRegistry) => void;
/** A module with a `register` function, or that function. */
export type Catalog = Register | { readonly register: Register };

/** A registry with the types that ship, then those of each catalog. Throws what registering throws. */
export function createRegistry(...catalogs: readonly Catalog[]): RouterPluginRegistry {
  const registry = new RouterPluginRegistry({ defaultSelection });
  registerBuiltIns(registry);
  catalogs.forEach((catalog, i) => {
    const invalid = (what: string, cause?: unknown) =>
      new WarmrouteError("invalid_plugin", `catalog ${i + 1} ${what}`, { path: `catalogs[${i}]`, cause });
    let answer: unknown;
    try {
      const register: unknown = typeof catalog === "function" ? catalog : catalog?.register;
      if (typeof register !== "function") throw invalid("has no register function");
      answer = Reflect.apply(register, catalog, [registry]);
    } catch (error) {
      if (isWarmrouteError(error)) throw error;
      throw invalid(`fails to register: ${reasonOf(error)}`, error);
    }
    if (isPromise(answer)) {
      disown(answer);
      throw invalid("registers later: register must be done when it returns");
    }
  });
  return registry;
}

function bundleOf({ plugins, errors: [first] }: Resolution): RouterPlugins {
  if (first) throw first;
  return plugins;
}
