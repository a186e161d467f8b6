import { existsSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { isAbsolute, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { WarmrouteError } from "../../core/errors.js";
import { isWarmrouteError, reasonOf } from "../../core/foreign.js";
import { shortened } from "../../core/ids.js";
import type { Catalog } from "../../plugins/registry.js";

/**
 * Imports a catalog: a module file by its path, relative to the working directory, or a package by its name, found
 * from there. Throws `unreadable` when there is none, `invalid_plugin` when it fails, has no `register`, or has not
 * loaded after `timeoutMs` (30 s unless given).
 */
export async function loadCatalog(pathOrPackage: string, { timeoutMs = 30_000 } = {}): Promise<Catalog> {
  const file = fileOf(pathOrPackage);
  // Also keeps the process: where nothing else does, Node ends it without a word.
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const fault = `never finishes loading: it awaits something that did not come in ${timeoutMs / 1000} s`;
    timer = setTimeout(() => reject(invalid(pathOrPackage, fault)), timeoutMs);
  });
  let module: { register?: unknown };
  try {
    module = await Promise.race([import(pathToFileURL(file).href), late]);
  } catch (cause) {
    if (isWarmrouteError(cause)) throw cause;
    throw invalid(pathOrPackage, `fails to load: ${reasonOf(cause)}`, cause);
  } finally {
    clearTimeout(timer);
  }
  if (typeof module.register !== "function") throw invalid(pathOrPackage, "exports no register function");
  return module as Catalog;
}

const isPath = (name: string) => name.startsWith(".") || isAbsolute(name);

function fileOf(name: string): string {
  const path = resolve(name);
  const found = name === "" ? undefined : statSync(path, { throwIfNoEntry: false });
  if (found?.isFile()) return path;
  if (found?.isDirectory() && isPath(name)) throw missing(name, "it is a directory; name the module in it");
  if (name === "" || isPath(name)) throw missing(name, `there is no file ${path}`);
  try {
    return packageFile(name);
  } catch (cause) {
    throw missing(name, "there is no such file or package", cause);
  }
}

/**
 * The module that `import` of a package gives in the working directory. Node itself would look from the file that
 * the `import` stands in, and its `require.resolve` passes over what only `import` may have.
 */
function packageFile(name: string): string {
  const require = createRequire(join(process.cwd(), "catalog"));
  const [, packageName = "", subpath = ""] = /^((?:@[^/]*\/)?[^/]*)(.*)$/.exec(name) ?? [];
  for (const folder of require.resolve.paths(name) ?? []) {
    const manifest = join(folder, packageName, "package.json");
    if (!existsSync(manifest)) continue;
    const { exports } = JSON.parse(readFileSync(manifest, "utf8")) as { exports?: unknown };
    const target = targetOf(isTargets(exports) ? exports[`.${subpath}`] : subpath === "" ? exports : undefined);
    if (target !== undefined) return join(folder, packageName, target);
    break;
  }
  return require.resolve(name);
}

/** Whether a manifest's `exports` are by subpath, and not those of the package itself. */
const isTargets = (exports: unknown): exports is Record<string, unknown> =>
  typeof exports === "object" && exports !== null && Object.keys(exports).some((key) => key.startsWith("."));

const conditions = ["node", "import", "module-sync", "default"];

/** The file of an export: of the first condition that holds. */
function targetOf(target: unknown): string | undefined {
  if (typeof target === "string") return target;
  if (typeof target !== "object" || target === null) return undefined;
  const held = Object.entries(target).filter(([condition]) => conditions.includes(condition));
  return held.map(([, inner]) => targetOf(inner)).find((file) => file !== undefined);
}

const missing = (name: string, reason: string, cause?: unknown) =>
  new WarmrouteError("unreadable", `cannot load the catalog ${JSON.stringify(shortened(name))}: ${reason}`, {
    path: name,
    cause,
  });

const invalid = (name: string, fault: string, cause?: unknown) =>
  new WarmrouteError("invalid_plugin", `the catalog ${shortened(name)} ${fault}`, { path: name, cause });
