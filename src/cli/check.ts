import type { Command } from "commander";
import { WarmrouteError } from "../core/errors.js";
import { type WorkerRole, workerRoles } from "../core/types.js";
import { type KindName, kindNames, pluginKinds, singleKinds } from "../plugins/kinds.js";
import { listed } from "../plugins/names.js";
import type { PolicyProfile, RouterPolicy } from "../plugins/policy/contract.js";
import { inFileOrder, type PolicyProblem, problemsOf } from "../plugins/problem.js";
import { createRegistry } from "../plugins/registry.js";
import type { Resolution, ResolvedRole } from "../plugins/resolve.js";
import { loadPolicy } from "../runtime/node/index.js";
import { usageError } from "./options.js";
import { loadRegistry, type PluginFlags, policyPath, resolveOptions, withPluginOptions } from "./plugins.js";
import { BAD_INPUT } from "./report.js";
import { problemLine } from "./text.js";

interface CheckFlags extends PluginFlags {
  types?: boolean;
  json?: boolean;
}

/** Adds `warmroute check`: what start-up does with a policy file, for all roles, and all that is wrong with it. */
export function registerCheck(program: Command): void {
  const command = program.command("check").description("check a policy file, and show what resolves for each role");
  withPluginOptions(command)
    .option("--types", "list the registered types")
    .option("--json", "print one JSON document")
    .action(check);
}

async function check(flags: CheckFlags): Promise<void> {
  const path = policyPath(flags);
  if (path === undefined && !flags.types) throw usageError("--policy", "--policy is missing");
  const problems: PolicyProblem[] = [];
  const attempt = async <T>(make: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await make();
    } catch (error) {
      if (!(error instanceof WarmrouteError) || error.code === "invalid_usage") throw error;
      problems.push(...problemsOf(error));
      return undefined;
    }
  };
  const registry = await attempt(() => loadRegistry(flags));
  const policy = path === undefined ? undefined : await attempt(() => loadPolicy(path));
  // Only what could be loaded can be resolved; without a catalog its types would seem unknown.
  const complete = registry !== undefined && (path === undefined || policy !== undefined);
  const resolution = complete ? registry.resolveAll(policy, resolveOptions(flags)) : undefined;
  for (const error of resolution?.errors ?? []) problems.push(...problemsOf(error));
  const types = flags.types ? (registry ?? createRegistry()).types() : undefined;

  if (problems.length > 0 || !resolution) {
    process.exitCode = BAD_INPUT;
    const errors = inFileOrder(problems);
    if (flags.json) print(JSON.stringify({ ok: false, errors: errors.map(errorDocument) }));
    else process.stderr.write(errors.map((problem) => `${errorLine(problem, path)}\n`).join(""));
    return;
  }
  if (flags.json) {
    print(JSON.stringify({ ...okDocument(resolution), ...(types === undefined ? {} : { types: bySection(types) }) }));
    return;
  }
  for (const [section, names] of Object.entries(types ? bySection(types) : {})) print(`${section}: ${listed(names)}`);
  if (path !== undefined) print(summary(path, policy, resolution));
}

const print = (text: string) => process.stdout.write(`${text}\n`);

const bySection = (types: Readonly<Record<KindName, string[]>>): Record<string, string[]> =>
  Object.fromEntries(kindNames.map((kind) => [pluginKinds[kind].section, types[kind]]));

// ---- as JSON (CONTRACT: check)

function okDocument({ roles, singles }: Resolution): Record<string, unknown> {
  const ordered = workerRoles.map((role) => {
    const { instance, type, source, parameters } = roles[role]!;
    return [role, { instance, type, source, parameters }];
  });
  const sections = singleKinds.map((kind) => [pluginKinds[kind].section, singles[kind] ?? null]);
  return { ok: true, roles: Object.fromEntries(ordered), ...Object.fromEntries(sections) };
}

const errorDocument = ({ code, path, line, column, message, suggestion, provider }: PolicyProblem) => ({
  code,
  path,
  line: line ?? null,
  column: column ?? null,
  message,
  ...(suggestion === undefined ? {} : { suggestion }),
  ...(provider === undefined ? {} : { provider }),
});

// ---- for people

function errorLine(problem: PolicyProblem, file: string | undefined): string {
  const { line, column } = problem;
  return problemLine(line === undefined ? "error" : `${file}:${line}:${column}`, problem);
}

function summary(path: string, policy: RouterPolicy | undefined, { roles, singles }: Resolution): string {
  const rows = workerRoles.map((role) => [role, ...roleCells(role, roles[role]!)]);
  for (const kind of singleKinds) {
    const single = singles[kind];
    const cells = single
      ? [single.type, `from ${pluginKinds[kind].section}`, parametersText(single.parameters)]
      : ["<none>", "", ""];
    rows.push([pluginKinds[kind].noun, ...cells]);
  }
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]!.length)));
  const lines = rows.map((row) => `  ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join("  ")}`.trimEnd());
  return [`${path} is valid`, ...lines, `  ${queues(policy)}`].join("\n");
}

function roleCells(role: WorkerRole, { instance, type, source, parameters }: ResolvedRole): string[] {
  const from = {
    "built-in": "nothing else is chosen",
    file: `from worker_selection.${role}`,
    env: "from the environment",
    option: `from --${role}-policy`,
  }[source];
  return [type === null ? instance : `${instance} (${type})`, from, parametersText(parameters)];
}

const parametersText = (parameters: object) => (Object.keys(parameters).length > 0 ? JSON.stringify(parameters) : "");

function queues(policy: RouterPolicy | undefined): string {
  const shown = 5;
  const of = ({ policyClasses: { length } }: PolicyProfile) => `${length} ${length === 1 ? "class" : "classes"}`;
  const models = [...(policy?.models ?? [])];
  const root = policy?.profile ? of(policy.profile) : "one class, default,";
  const listed = models.slice(0, shown).map(([name, profile]) => `${of(profile)} for ${name}`);
  const more = models.length > shown ? [`their own for ${models.length - shown} more`] : [];
  return `queues: ${[...listed, ...more, `${root} for every ${models.length > 0 ? "other " : ""}model`].join(", ")}`;
}
