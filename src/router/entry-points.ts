import type { WorkerRole } from "../core/types.js";
import { workerRoles } from "../core/types.js";

/** What an entry point does with the plugins of a policy file. What it cannot honour it refuses at start-up. */
export interface EntryPoint {
  /** Roles that workers can have here; a policy that the file chooses for another one is refused (`role_not_served`). */
  readonly roles: readonly WorkerRole[];
  /** `refused`: a classifier is an error (`classifier_not_supported`). `none`: nothing here can name one. */
  readonly requestClassifier: "installed" | "refused" | "checked" | "none";
  readonly workerSelection: "used" | "checked" | "built-in types" | "none";
}

const library: EntryPoint = { roles: workerRoles, workerSelection: "used", requestClassifier: "installed" };
const http: EntryPoint = { roles: ["aggregated"], workerSelection: "used", requestClassifier: "installed" };
const pluginless: EntryPoint = { roles: [], workerSelection: "none", requestClassifier: "none" };

/** Every constructor of the library and every verb of the command line. */
export const entryPoints = {
  createRouter: library,
  KvRouter: library,
  HttpFrontend: http,
  createFrontend: http,
  "warmroute serve": http,
  "warmroute replay": { roles: ["aggregated"], workerSelection: "used", requestClassifier: "refused" },
  "warmroute check": { roles: workerRoles, workerSelection: "checked", requestClassifier: "checked" },
  "warmroute explain": { roles: workerRoles, workerSelection: "built-in types", requestClassifier: "none" },
  "warmroute hash": pluginless,
  "warmroute trace": pluginless,
  "warmroute bench": pluginless,
} as const satisfies Record<string, EntryPoint>;

export type EntryPointName = keyof typeof entryPoints;

/** Which calls of a router with a classifier classify; the others bypass it, and those that could not are counted. */
export const routerCalls = {
  generate: "classifies",
  fetch: "classifies",
  route: "classifies",
  select: "classifies",
  probe: "bypasses",
  bestWorker: "bypasses",
  overlap: "bypasses",
  reserve: "bypasses",
} as const satisfies Record<string, "classifies" | "bypasses">;
