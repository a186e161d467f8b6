import { WarmrouteError } from "../../core/errors.js";
import { FrozenMap } from "../../core/frozen-map.js";
import { describe } from "../../core/ids.js";
import { workerRoles } from "../../core/types.js";
import { pluginKinds, singleKinds } from "../kinds.js";
import { type PolicyProblem, pathText, problemsError } from "../problem.js";
import { type SchemaProblem, schemaProblems, withoutSuspects } from "../schema-issues.js";
import type { PluginSpec, PolicyProfile, RouterPolicy, WorkerSelectionSection } from "./contract.js";
import type { PolicyDocument } from "./document.js";
import { asMapping } from "./rule.js";
import { ruleProblems } from "./rules.js";

/** A policy file is refused above this; a thousand models take a fifth of it. */
export const mostPolicyBytes = 1 << 20;

/**
 * Reads a policy file (docs/policy-file.md): YAML or JSON, as text or as UTF-8. Loads the parser on first use.
 * Rejects with one error for all that is wrong: its code and place are those of the first fault in the file, and
 * `details.errors` lists all.
 */
export async function parsePolicy(
  text: string | Uint8Array,
  options: { file?: string | undefined } = {},
): Promise<RouterPolicy> {
  const { file } = options;
  const source = decoded(text, file);
  const [{ readDocument }, { policySchema }] = await Promise.all([import("./document.js"), import("./schema.js")]);
  const { document, problems } = readDocument(source);
  if (!document) throw problemsError(problems, { file });
  const root = document.isEmpty ? {} : asMapping(document.value);
  const parsed = policySchema.safeParse(root ?? document.value);
  const found = [
    ...(parsed.success
      ? []
      : schemaProblems(parsed.error.issues, { input: document.value, schema: policySchema, textOf: pathText })),
    ...(root ? ruleProblems(root) : []),
  ];
  const all = [...problems, ...withoutSuspects(found).map((problem) => placed(problem, document))];
  if (!parsed.success || all.length > 0) throw problemsError(all, { file });
  return policyOf(document, parsed.data as Profiles, file);
}

function placed({ code, path, of, message, suggestion }: SchemaProblem, document: PolicyDocument): PolicyProblem {
  // An empty file has no first value.
  const place =
    path.length === 0 && code === "empty_section" ? { path: "", line: 1, column: 1 } : document.place(path, of);
  return { code, ...place, message, ...(suggestion === undefined ? {} : { suggestion }) };
}

/** The text of a file. A mark of its byte order is no part of it. */
function decoded(text: string | Uint8Array, file: string | undefined): string {
  if (typeof text !== "string" && !(text instanceof Uint8Array)) {
    throw new WarmrouteError("invalid_type", `a policy must be a string or bytes, not ${describe(text)}`, { path: "" });
  }
  const refuse = (code: "out_of_range" | "unreadable", message: string, line = 1) =>
    problemsError([{ code, path: "", line, column: 1, message }], { file });
  if (text.length > mostPolicyBytes) {
    throw refuse("out_of_range", "the policy file is larger than 1 MiB");
  }
  if (typeof text === "string") return text.replace(/^\uFEFF/, "");
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(text);
  } catch {
    const [before = ""] = new TextDecoder().decode(text).split("\uFFFD");
    throw refuse("unreadable", "the policy file is not UTF-8 from this line on", before.split("\n").length);
  }
}

// ---- the policy, once nothing is wrong

/** What the schema answers for the queues. */
interface Profiles extends Partial<PolicyProfile> {
  readonly models: Readonly<Record<string, PolicyProfile>>;
}

function policyOf(document: PolicyDocument, profiles: Profiles, file: string | undefined): RouterPolicy {
  const root = document.value as Readonly<Record<string, unknown>>;
  const { defaultPolicyFamily, uncachedIslBuckets, policyClasses, models } = profiles;
  const policy: { -readonly [K in keyof RouterPolicy]: RouterPolicy[K] } = {
    models: new FrozenMap(Object.entries(models).map(([name, profile]) => [name, deepFrozen(profile)])),
  };
  if (file !== undefined) policy.file = file;
  if (defaultPolicyFamily !== undefined && uncachedIslBuckets && policyClasses) {
    policy.profile = deepFrozen({ defaultPolicyFamily, uncachedIslBuckets, policyClasses });
  }
  if (root.worker_selection) policy.workerSelection = selectionOf(document, root.worker_selection as RawSelection);
  for (const kind of singleKinds) {
    const { section } = pluginKinds[kind];
    if (root[section]) policy[kind] = deepFrozen(specOf(document, [section], root[section] as RawPlugin));
  }
  return Object.freeze(policy);
}

interface RawPlugin {
  readonly type: string;
  readonly parameters?: Readonly<Record<string, unknown>>;
}
type RawSelection = Readonly<Record<string, string>> & {
  readonly instances?: readonly (RawPlugin & { name: string })[];
};

function specOf(
  document: PolicyDocument,
  path: readonly PropertyKey[],
  { type, parameters = {} }: RawPlugin,
): PluginSpec {
  return {
    type,
    parameters,
    typeAt: document.place([...path, "type"], "value"),
    parameterAt: (below, of) => document.place([...path, "parameters", ...below], of),
  };
}

function selectionOf(document: PolicyDocument, section: RawSelection): WorkerSelectionSection {
  const named = workerRoles.filter((role) => section[role] !== undefined);
  const place = (role: string) => document.place(["worker_selection", role], "value");
  return deepFrozen({
    roles: Object.fromEntries(named.map((role) => [role, section[role]!])),
    roleAt: Object.fromEntries(named.map((role) => [role, place(role)])),
    instances: (section.instances ?? []).map((instance, i) => ({
      name: instance.name,
      ...specOf(document, ["worker_selection", "instances", i], instance),
    })),
  });
}

function deepFrozen<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    for (const part of Object.values(value)) deepFrozen(part);
    Object.freeze(value);
  }
  return value;
}
