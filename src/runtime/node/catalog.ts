import { statSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { constants, Script } from "node:vm";
import { WarmrouteError } from "../../core/errors.js";
import type { Catalog } from "../../plugins/registry.js";

/**
 * Imports a catalog: a module file by its path, relative to the working directory, or a package by its name, found
 * from there. Throws `unreadable` when there is none, `invalid_plugin` when it fails or has no `register`.
 */
export async function loadCatalog(pathOrPackage: string): Promise<Catalog> {
  const path = resolve(pathOrPackage);
  const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
  if (!isFile && (isAbsolute(pathOrPackage) || pathOrPackage.startsWith("."))) {
    throw missing(pathOrPackage, `there is no file ${path}`);
  }
  let module: { register?: unknown };
  try {
    module = isFile ? await import(pathToFileURL(path).href) : await importFrom(process.cwd(), pathOrPackage);
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    if (message.includes(importer) || pathOrPackage === "")
      throw missing(pathOrPackage, "no such file or package", cause);
    throw invalid(pathOrPackage, `fails to load: ${message}${placeOf(cause)}`, cause);
  }
  if (typeof module.register !== "function") throw invalid(pathOrPackage, "exports no register function");
  return module as Catalog;
}

const importer = "warmroute-catalog";

/** Imports a package as a module in that directory would: Node's `import` looks from the file that it stands in. */
async function importFrom(directory: string, name: string): Promise<{ register?: unknown }> {
  const script = new Script("(name) => import(name)", {
    filename: join(directory, importer),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  return await script.runInThisContext()(name);
}

/** Where a module breaks off; its message does not say, only the first line of its stack does. */
function placeOf(error: unknown): string {
  const place = error instanceof SyntaxError ? /^file:.*:\d+$/m.exec(error.stack ?? "")?.[0] : undefined;
  return place === undefined ? "" : ` (${place})`;
}

const missing = (name: string, reason: string, cause?: unknown) =>
  new WarmrouteError("unreadable", `cannot load the catalog ${JSON.stringify(name)}: ${reason}`, { path: name, cause });

const invalid = (name: string, fault: string, cause?: unknown) =>
  new WarmrouteError("invalid_plugin", `the catalog ${name} ${fault}`, { path: name, cause });
