// From the names in a policy file to factories (spec: plugins.md §1.6).
import { WarmrouteError } from "../core/errors.js";
import { disown, isPromise, reasonOf } from "../core/foreign.js";
import { describe, shortened } from "../core/ids.js";
import type { WorkerRole } from "../core/types.js";
import { type RouterPluginParts, RouterPlugins } from "./bundle.js";
import {
  type Factories,
  type FactoryOf,
  type KindName,
  type ProviderOf,
  pluginKinds,
  type SingleKindName,
  singleKinds,
} from "./kinds.js";
import { DEFAULT, listed, sortedNames } from "./names.js";
import { type Override, overrideOf, type ResolveOptions } from "./overrides.js";
import { isRefusal, pluginParameters } from "./plugin-parameters.js";
import type { PluginSpec, PolicyProfiles, RouterPolicy, WorkerSelectionInstance } from "./policy/contract.js";
import { problemsError } from "./problem.js";
import { suggest } from "./schema-issues.js";
import type { WorkerSelectionFactory } from "./worker-selection/contract.js";

/** The registered types that names are looked up in. */
export interface Providers {
  provider<K extends KindName>(kind: K, type: string): ProviderOf<K> | undefined;
  types(): Readonly<Record<KindName, string[]>>;
  /** What roles without a policy of their own run. */
  readonly defaultSelection: WorkerSelectionFactory | undefined;
}

/** A plugin that was made. */
export interface ResolvedPlugin {
  readonly type: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** What a role runs; the default has neither type nor parameters. */
export interface ResolvedRole {
  readonly instance: string;
  readonly type: string | null;
  readonly source: "built-in" | "file" | "env" | "option";
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** All that came of a policy file: either `errors` is empty, or the rest is incomplete. */
export interface Resolution {
  readonly plugins: RouterPlugins;
  readonly roles: Readonly<Partial<Record<WorkerRole, ResolvedRole>>>;
  readonly singles: Readonly<Partial<Record<SingleKindName, ResolvedPlugin>>>;
  /** In the order of resolving: roles, then the kinds of one plugin. */
  readonly errors: readonly WarmrouteError[];
}

/** Resolves these roles, and the kinds of one plugin; every provider that something selects is called once. */
export function resolve(
  providers: Providers,
  policy: RouterPolicy | undefined,
  roles: readonly WorkerRole[],
  options: ResolveOptions,
): Resolution {
  if (policy !== undefined && typeof policy?.models?.get !== "function") {
    throw new WarmrouteError("invalid_config", "policy must be what parsePolicy() returned", { path: "policy" });
  }
  const errors: WarmrouteError[] = [];
  const attempt = <T>(make: () => T): T | undefined => {
    try {
      return make();
    } catch (error) {
      if (!(error instanceof WarmrouteError)) throw error;
      // One variable can be wrong for several roles.
      if (!errors.some(({ code, path }) => code === error.code && path === error.path)) errors.push(error);
      return undefined;
    }
  };
  const instances = new Map<string, WorkerSelectionFactory | undefined>();
  const factories = new Map<WorkerRole, WorkerSelectionFactory>();
  const customRoles = new Set<WorkerRole>();
  const resolved: Partial<Record<WorkerRole, ResolvedRole>> = {};
  for (const role of roles) {
    const choice = attempt(() => choiceOf(role, policy, options));
    if (!choice) continue;
    const { instance, source, isGlobal } = choice;
    if (!instance) {
      resolved[role] = { instance: DEFAULT, type: null, source, parameters: {} };
      continue;
    }
    const { name, type, parameters } = instance;
    if (!instances.has(name)) {
      instances.set(
        name,
        attempt(() => make(providers, "workerSelection", instance, policy?.file)),
      );
    }
    const factory = instances.get(name);
    if (!factory) continue;
    factories.set(role, factory);
    if (!isGlobal) customRoles.add(role);
    resolved[role] = { instance: name, type, source, parameters };
  }

  const singleFactories: Partial<Factories> = {};
  const singles: Partial<Record<SingleKindName, ResolvedPlugin>> = {};
  const addSingle = <K extends SingleKindName>(kind: K) => {
    const spec = policy?.[kind];
    const factory = spec && attempt(() => make(providers, kind, spec, policy?.file));
    if (!factory) return;
    singleFactories[kind] = factory;
    singles[kind] = { type: spec.type, parameters: spec.parameters };
  };
  singleKinds.forEach(addSingle);
  // Each kind has its field in the bundle.
  const fields: Pick<RouterPluginParts, SingleKindName> = singleFactories;
  const plugins = new RouterPlugins({
    ...fields,
    customRoles,
    workerSelection: factories.size > 0 ? dispatching(factories, providers.defaultSelection) : undefined,
    profiles: policy && profilesOf(policy),
  });
  return { plugins, roles: resolved, singles, errors };
}

/** What a file says of queues; a file of plugins alone says nothing. */
function profilesOf({ profile, models }: RouterPolicy): PolicyProfiles | undefined {
  if (!profile && models.size === 0) return undefined;
  return { models, ...(profile ? { profile } : {}) };
}

/** Who decides for a role, and the instance; none for the default. */
interface Choice {
  readonly instance?: WorkerSelectionInstance;
  readonly source: ResolvedRole["source"];
  readonly isGlobal: boolean;
}

function choiceOf(role: WorkerRole, policy: RouterPolicy | undefined, options: ResolveOptions): Choice {
  const override = overrideOf(role, options);
  const name = override?.instance ?? policy?.workerSelection?.roles[role];
  const source = override?.source ?? (name === undefined ? "built-in" : "file");
  const isGlobal = override?.isGlobal ?? false;
  if (name === undefined || name === DEFAULT) return { source, isGlobal };
  const instances = policy?.workerSelection?.instances ?? [];
  const instance = instances.find((one) => one.name === name);
  if (instance) return { instance, source, isGlobal };
  // What the file itself names is checked when it is read.
  throw unknownInstance(name, override!, sortedNames(instances.map((one) => one.name)));
}

function unknownInstance(name: string, { path }: Override, available: string[]): WarmrouteError {
  const message = `${path} names no instance of worker_selection: ${describe(name)}; instances: ${listed(available)}`;
  const problem = { code: "unknown_instance", path, message, ...suggest(name, [...available, DEFAULT]) } as const;
  return problemsError([problem], { details: { name, available } });
}

/** Calls the provider of a plugin. Throws `unknown_type`, `provider`, `invalid_plugin`, and what its parameters have. */
function make<K extends KindName>(
  providers: Providers,
  kind: K,
  spec: PluginSpec,
  file: string | undefined,
): FactoryOf<K> {
  const { type, typeAt } = spec;
  const { noun } = pluginKinds[kind];
  const named = shortened(type);
  const provider = providers.provider(kind, type);
  if (!provider) {
    const available = providers.types()[kind];
    const message = `${typeAt.path} is no registered ${noun}: ${named}; registered types: ${listed(available)}`;
    throw problemsError([{ code: "unknown_type", ...typeAt, message, ...suggest(type, available) }], {
      file,
      details: { name: type, available },
    });
  }
  const parametersAt = spec.parameterAt([], "key");
  let factory: unknown;
  try {
    factory = provider(pluginParameters(spec, file));
  } catch (cause) {
    if (isRefusal(cause)) throw cause;
    const message = `the ${noun} ${named} refuses its parameters: ${reasonOf(cause)}`;
    throw problemsError([{ code: "provider", ...parametersAt, message, provider: type }], {
      file,
      details: { type, cause },
      cause,
    });
  }
  if (typeof factory === "function") return factory as FactoryOf<K>;
  if (isPromise(factory)) disown(factory);
  const given = isPromise(factory) ? "a promise" : describe(factory);
  const message = `the provider of the ${noun} ${named} must return a factory, which is a function, not ${given}`;
  throw problemsError([{ code: "invalid_plugin", ...typeAt, message, provider: type }], { file, details: { type } });
}

/** One factory for all roles: each its own policy, else the default one. */
function dispatching(
  factories: ReadonlyMap<WorkerRole, WorkerSelectionFactory>,
  fallback: WorkerSelectionFactory | undefined,
): WorkerSelectionFactory {
  return (init) => {
    const factory = factories.get(init.role) ?? fallback;
    if (factory) return factory(init);
    const message = `no policy is chosen for the role ${init.role}, and this registry has no default one`;
    throw new WarmrouteError("missing_default", message, { details: { role: init.role } });
  };
}
