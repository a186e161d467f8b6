// What the buckets and classes of one profile ask of one another (spec: plugins.md §2.4).
import { shortened } from "../../core/ids.js";
import type { SchemaProblem } from "../schema-issues.js";
import { suggest } from "../schema-issues.js";
import { asList, asMapping, asName, choices, type Mapping, type Path, problem, repeats } from "./rule.js";

export const profileKeys = ["default_policy_family", "uncached_isl_buckets", "policy_classes"] as const;

/** Further gaps in a matrix are not listed: a file can ask for more than it has bytes. */
const mostGaps = 100;

/** The problems of a profile. */
export function profileRules(profile: Mapping, path: Path): SchemaProblem[] {
  const isKnown = (key: string) => Object.hasOwn(profile, key);
  const missing = profileKeys
    .filter((key) => !isKnown(key))
    .map((key) =>
      problem("incomplete_profile", [...path, key], "key", `is missing: a profile needs ${profileKeys.join(", ")}`),
    );
  const empty = profileKeys
    .filter((key) => Array.isArray(profile[key]) && asList(profile[key]).length === 0)
    .map((key) => problem("empty_section", [...path, key], "key", "has no entry"));
  const buckets = asList(profile.uncached_isl_buckets).map(asMapping);
  const classes = asList(profile.policy_classes).map((value, i) => classOf(value, [...path, "policy_classes", i]));
  return [
    ...missing,
    ...empty,
    ...bucketRules(buckets, [...path, "uncached_isl_buckets"]),
    ...repeats(
      classes.map(({ name }) => name),
      (i) => [...classes[i]!.path, "name"],
    ),
    ...familyRules(profile, path, classes),
    ...matrixRules(
      buckets.map((entry) => asName(entry?.bucket)),
      classes,
      [...path, "policy_classes"],
    ),
  ];
}

function bucketRules(buckets: readonly (Mapping | undefined)[], path: Path): SchemaProblem[] {
  const problems = repeats(
    buckets.map((entry) => asName(entry?.bucket)),
    (i) => [...path, i, "bucket"],
  );
  let previous: number | undefined;
  buckets.forEach((entry, i) => {
    const least = entry?.min_tokens;
    if (typeof least !== "number" || !Number.isSafeInteger(least) || least < 0) return;
    const at = [...path, i, "min_tokens"];
    if (i === 0 && least !== 0) {
      problems.push(problem("out_of_range", at, "value", `must be 0 in the first bucket, not ${least}`));
    } else if (previous !== undefined && least <= previous) {
      const fault = `must be more than ${previous}, that of the bucket before it, not ${least}`;
      problems.push(problem("not_increasing", at, "value", fault));
    }
    previous = least;
  });
  return problems;
}

/** What a class says of itself, where it says it rightly. */
interface Class {
  readonly path: Path;
  readonly name: string | undefined;
  readonly family: string | undefined;
  readonly bucket: string | undefined;
  /** Whether it belongs to no family, and is chosen by its name; undefined where that cannot be told. */
  readonly isExplicit: boolean | undefined;
  /** The key that the one it has goes with. */
  readonly lacks: "policy_family" | "cache_bucket" | undefined;
}

function classOf(value: unknown, path: Path): Class {
  const one = asMapping(value);
  const [hasFamily, hasBucket] = [one && "policy_family" in one, one && "cache_bucket" in one];
  return {
    path,
    name: asName(one?.name),
    family: asName(one?.policy_family),
    bucket: asName(one?.cache_bucket),
    isExplicit: one && !hasFamily && !hasBucket,
    lacks: hasFamily === hasBucket ? undefined : hasFamily ? "cache_bucket" : "policy_family",
  };
}

const familiesOf = (classes: readonly Class[]): ReadonlySet<string> =>
  new Set(classes.map(({ family }) => family).filter((name) => name !== undefined));

function familyRules(profile: Mapping, path: Path, classes: readonly Class[]): SchemaProblem[] {
  const families = familiesOf(classes);
  const problems: SchemaProblem[] = [];
  for (const { path, name, isExplicit } of classes) {
    if (!isExplicit || name === undefined || !families.has(name)) continue;
    const fault = `is also the family ${shortened(name)}: a request that names it could mean either`;
    problems.push(problem("name_clash", [...path, "name"], "value", fault));
  }
  const fallback = asName(profile.default_policy_family);
  const allKnown =
    classes.length > 0 && classes.every(({ family, isExplicit, lacks }) => family ?? isExplicit ?? lacks);
  if (fallback === undefined || !allKnown || families.has(fallback)) return problems;
  const fault = `names no family of a class: ${shortened(fallback)}; families: ${choices(families)}`;
  const at = [...path, "default_policy_family"];
  return [...problems, problem("unknown_reference", at, "value", fault, suggest(fallback, families))];
}

/** Each family needs one class for each bucket. */
function matrixRules(buckets: readonly (string | undefined)[], classes: readonly Class[], path: Path): SchemaProblem[] {
  const known = new Set(buckets.filter((name) => name !== undefined));
  const listing = choices(known);
  const bucketsKnown = buckets.length > 0 && !buckets.includes(undefined);
  const problems: SchemaProblem[] = [];
  const cells = new Map<string, number>();
  classes.forEach(({ path: at, family, bucket, lacks }, i) => {
    if (lacks) {
      const given = lacks === "cache_bucket" ? "policy_family" : "cache_bucket";
      problems.push(problem("missing_key", [...at, lacks], "key", `is missing: it goes with ${given}`));
    }
    if (bucketsKnown && bucket !== undefined && !known.has(bucket)) {
      const fault = `names no bucket: ${shortened(bucket)}; buckets: ${listing}`;
      problems.push(problem("unknown_reference", [...at, "cache_bucket"], "value", fault, suggest(bucket, known)));
    }
    if (family === undefined || bucket === undefined) return;
    const first = cells.get(cellOf(family, bucket));
    if (first === undefined) cells.set(cellOf(family, bucket), i);
    else {
      const fault = `is a second class for ${cellText(family, bucket)}, after policy_classes[${first}]`;
      problems.push(problem("duplicate_cell", at, "value", fault));
    }
  });
  // Where a class does not tell its place, what is missing cannot be told.
  const allPlaced = classes.every(
    ({ isExplicit, family, bucket }) =>
      isExplicit === true || (family !== undefined && bucket !== undefined && known.has(bucket)),
  );
  return bucketsKnown && allPlaced ? [...problems, ...gaps(familiesOf(classes), known, cells, path)] : problems;
}

function gaps(
  families: ReadonlySet<string>,
  buckets: ReadonlySet<string>,
  cells: ReadonlyMap<string, number>,
  path: Path,
): SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  for (const family of families) {
    for (const bucket of buckets) {
      if (cells.has(cellOf(family, bucket))) continue;
      const fault = `has no class for ${cellText(family, bucket)}`;
      problems.push(problem("incomplete_matrix", path, "key", fault));
      if (problems.length === mostGaps) return problems;
    }
  }
  return problems;
}

const cellText = (family: string, bucket: string) =>
  `the family ${shortened(family)} and the bucket ${shortened(bucket)}`;

/** No name has a space. */
const cellOf = (family: string, bucket: string) => `${family} ${bucket}`;
