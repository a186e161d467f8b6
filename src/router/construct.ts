// The one construction of routers: whatever builds a router goes through here, so that plugins behave alike everywhere.
import { WarmrouteError } from "../core/errors.js";
import { describe } from "../core/ids.js";
import type { WorkerRole } from "../core/types.js";
import { RouterPlugins } from "../plugins/bundle.js";
import type { RouterPolicy } from "../plugins/policy/contract.js";
import { createRegistry } from "../plugins/registry.js";
import { defaultSelection } from "../plugins/worker-selection/built-in.js";
import type { WorkerSelectionFactory } from "../plugins/worker-selection/contract.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
import { type EntryPoint, type EntryPointName, entryPoints } from "./entry-points.js";

/**
 * The bundle of a router. Without one, a policy file is resolved with the built-in types alone. Throws
 * `invalid_config` for both at once, `classifier_not_installed` and `no_catalog_installed` for a file that needs a
 * bundle, and what resolving throws.
 */
export function bundleOf({ plugins, policy }: { plugins?: RouterPlugins; policy?: RouterPolicy }): RouterPlugins {
  if (policy === undefined) return plugins ?? new RouterPlugins();
  if (plugins !== undefined) {
    const message = "give plugins or policy, not both: the bundle carries what its policy file says";
    throw new WarmrouteError("invalid_config", message, { path: "policy" });
  }
  if (policy.requestClassifier) {
    const { type, typeAt } = policy.requestClassifier;
    const message = `the policy file names the request classifier ${type}, which only a resolved bundle can install`;
    throw new WarmrouteError("classifier_not_installed", message, { ...typeAt, details: { type } });
  }
  const registry = createRegistry();
  const shipped = registry.types().workerSelection;
  const chosen = new Set(Object.values(policy.workerSelection?.roles ?? {}));
  for (const { name, type, typeAt } of policy.workerSelection?.instances ?? []) {
    if (!chosen.has(name) || shipped.includes(type)) continue;
    const message = `the policy file selects the type ${type}, but no catalog is installed; shipped types: ${shipped.join(", ")}`;
    throw new WarmrouteError("no_catalog_installed", message, { ...typeAt, details: { type, available: shipped } });
  }
  return registry.resolvePlugins(policy);
}

/** Refuses what an entry point cannot honour: `classifier_not_supported`, `role_not_served`, `invalid_request` for none. */
export function assertHonoured(name: EntryPointName, plugins: RouterPlugins): void {
  const entryPoint: EntryPoint | undefined = Object.hasOwn(entryPoints, name) ? entryPoints[name] : undefined;
  if (!entryPoint) {
    const message = `there is no entry point ${describe(name)}, only ${Object.keys(entryPoints).join(", ")}`;
    throw new WarmrouteError("invalid_request", message, { path: "entryPoint" });
  }
  if (plugins.requestClassifier && entryPoint.requestClassifier !== "installed") {
    const message = `${name} cannot run a request classifier`;
    throw new WarmrouteError("classifier_not_supported", message, { details: { entryPoint: name } });
  }
  for (const role of plugins.customRoles) {
    if (!entryPoint.roles.includes(role)) {
      const message = `a policy is chosen for the role ${role}, which ${name} never serves`;
      throw roleError(message, name, role, { path: `worker_selection.${role}` });
    }
  }
}

/** Refuses a worker whose role an entry point can never have. */
export function assertServed(name: EntryPointName, { workerId, role }: { workerId: string; role: WorkerRole }): void {
  const entryPoint: EntryPoint = entryPoints[name];
  if (entryPoint.roles.includes(role)) return;
  throw roleError(`worker ${workerId} has the role ${role}, which ${name} does not serve`, name, role, { workerId });
}

/** The factory of every pool's policy: the bundle's, else the default one. */
export function selectionFactory({ workerSelection }: RouterPlugins): WorkerSelectionFactory {
  return workerSelection ?? defaultSelection;
}

/** Refuses what needs an index in a pool whose policy reads no caches. */
export function assertIndex({ usesIndex, policy, role }: SelectionCore, wanted: string): void {
  if (usesIndex) return;
  const message = `${wanted} needs the prefix index, but the policy ${policy.label} of the ${role} workers reads no caches`;
  throw new WarmrouteError("index_required", message, { details: { wanted, policy: policy.label, role } });
}

function roleError(message: string, entryPoint: EntryPointName, role: WorkerRole, more: Record<string, string>) {
  const { path = "role", ...details } = more;
  return new WarmrouteError("role_not_served", message, { path, details: { entryPoint, role, ...details } });
}
