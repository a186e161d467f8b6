// The options that choose plugins, shared by the commands that have them.
import type { Command } from "commander";
import { WarmrouteError } from "../core/errors.js";
import type { RouterPlugins } from "../plugins/bundle.js";
import { type ResolveOptions, variableOf } from "../plugins/overrides.js";
import { createRegistry, type RouterPluginRegistry } from "../plugins/registry.js";
import { loadCatalog, loadPolicy } from "../runtime/node/index.js";

/** What the options of `withPluginOptions` hold. */
export interface PluginFlags {
  policy?: string;
  catalog?: string[];
  prefillPolicy?: string;
  decodePolicy?: string;
}

/** The options of `withPluginOptions`. */
export const pluginOptions: Readonly<Record<keyof PluginFlags, string>> = {
  policy: "--policy",
  catalog: "--catalog",
  prefillPolicy: "--prefill-policy",
  decodePolicy: "--decode-policy",
};

/** Adds `--policy`, `--catalog`, `--prefill-policy` and `--decode-policy`. */
export function withPluginOptions(command: Command): Command {
  return command
    .option("--policy <file>", "the policy file (default: $WARMROUTE_ROUTER_POLICY_CONFIG)")
    .option("--catalog <module...>", "a module that registers plugins: a path or a package; give several or repeat")
    .option("--prefill-policy <name>", "the instance that selects prefill workers, in place of the file's")
    .option("--decode-policy <name>", "the instance that selects decode workers, in place of the file's");
}

/** Resolves the plugins of a command line and its environment, once. Throws what is wrong with them. */
export async function loadPlugins(flags: PluginFlags): Promise<RouterPlugins> {
  const registry = await loadRegistry(flags);
  const path = policyPath(flags);
  const policy = path === undefined ? undefined : await loadPolicy(path);
  return registry.resolvePlugins(policy, resolveOptions(flags));
}

/** The types that ship and those of the catalogs. */
export async function loadRegistry({ catalog = [] }: PluginFlags): Promise<RouterPluginRegistry> {
  const loaded = [];
  for (const name of catalog) loaded.push(await loadCatalog(name));
  return createRegistry(...loaded);
}

/** The path of the policy file, from the option or the environment. */
export function policyPath({ policy }: PluginFlags): string | undefined {
  if (policy === "") throw new WarmrouteError("invalid_usage", "--policy is empty", { path: "--policy" });
  return policy ?? variableOf("POLICY_CONFIG", process.env)?.value;
}

export function resolveOptions({ prefillPolicy, decodePolicy }: PluginFlags): ResolveOptions {
  return { env: process.env, prefillPolicy, decodePolicy };
}
