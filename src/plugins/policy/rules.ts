// What the keys of a policy file ask of one another (spec: plugins.md §2.1–§2.4). The rules also run on a file whose
// structure is wrong, so that all errors come at once: they look only at what is of the right type.
import { describe } from "../../core/ids.js";
import { workerRoles } from "../../core/types.js";
import { pluginKinds, singleKinds } from "../kinds.js";
import { DEFAULT } from "../names.js";
import { type SchemaProblem, suggest } from "../schema-issues.js";
import { profileKeys, profileRules } from "./profile-rules.js";
import { asList, asMapping, asName, choices, type Mapping, type Path, problem, repeats } from "./rule.js";

/** The problems of a whole file. */
export function ruleProblems(root: Mapping): SchemaProblem[] {
  return [
    ...contentRule(root),
    ...(profileKeys.some((key) => Object.hasOwn(root, key)) ? profileRules(root, []) : []),
    ...modelRules(root.models),
    ...selectionRules(root.worker_selection),
    ...singleKinds.flatMap((kind) => singleRules(root, pluginKinds[kind].section)),
  ];
}

function contentRule(root: Mapping): SchemaProblem[] {
  const keys = Object.keys(root);
  if (keys.length === 0) {
    const sections = singleKinds.map((kind) => pluginKinds[kind].section).join(", ");
    const message = `the policy file is empty: it needs a queue profile, models, worker_selection or ${sections}`;
    return [{ code: "empty_section", path: [], of: "value", message }];
  }
  const models = asMapping(root.models);
  if (keys.length > 1 || !models || Object.keys(models).length > 0) return [];
  return [problem("empty_section", ["models"], "key", "names no model, and the file holds nothing else")];
}

function modelRules(models: unknown): SchemaProblem[] {
  return Object.entries(asMapping(models) ?? {}).flatMap(([name, value]) => {
    const path = ["models", name];
    const unnamed = name === "" ? [problem("bad_identifier", path, "key", "must name a model")] : [];
    const profile = asMapping(value);
    return profile ? [...unnamed, ...profileRules(profile, path)] : unnamed;
  });
}

// ---- plugins

function selectionRules(value: unknown): SchemaProblem[] {
  const section = asMapping(value);
  if (!section) return [];
  const path = ["worker_selection"];
  const instances = asList(section.instances);
  if (Object.keys(section).every((key) => key === "instances" && Array.isArray(section[key]) && !instances.length)) {
    return [problem("empty_section", path, "key", "has neither an instance nor a role")];
  }
  const names = instances.map((instance) => asName(asMapping(instance)?.name));
  const pathOf = (i: number) => [...path, "instances", i, "name"];
  const reserved = names.flatMap((name, i) => (name === DEFAULT ? [reservedName(pathOf(i), "an instance")] : []));
  const known = new Set(names.filter((name) => name !== undefined && name !== DEFAULT)) as Set<string>;
  const unknown = workerRoles.flatMap((role) => {
    const chosen = section[role];
    if (typeof chosen !== "string" || chosen === DEFAULT || known.has(chosen)) return [];
    const fault = `names no instance: ${describe(chosen)}; instances: ${choices(known)}`;
    return [problem("unknown_reference", [...path, role], "value", fault, suggest(chosen, [...known, DEFAULT]))];
  });
  return [...reserved, ...repeats(names, pathOf), ...unknown];
}

const reservedName = (path: Path, what: string) =>
  problem("reserved_default", path, "value", `must not be ${DEFAULT}, which stands for what runs without ${what}`);

/** The section of a kind that runs one plugin. */
function singleRules(root: Mapping, section: string): SchemaProblem[] {
  if (asMapping(root[section])?.type !== DEFAULT) return [];
  const path = [section, "type"];
  return [
    problem("reserved_default", path, "value", `must not be ${DEFAULT}; leave ${section} out to run without one`),
  ];
}
