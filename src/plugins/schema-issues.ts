// What a schema refused, in the project's codes and words.
import { closest } from "../core/closest.js";
import type { ErrorCode } from "../core/errors.js";
import { describe, shortened } from "../core/ids.js";
import { identifier } from "./names.js";
import type { ParameterIssue } from "./parameters.js";
import { pathText } from "./problem.js";

/** A problem before it is placed in a document. */
export interface SchemaProblem {
  readonly code: ErrorCode;
  readonly path: readonly PropertyKey[];
  /** Whether the key at `path` is wrong, or its value. */
  readonly of: "key" | "value";
  readonly message: string;
  readonly suggestion?: string;
}

/** What zod's issues say beyond the common part, each where it applies. */
interface Issue extends ParameterIssue {
  readonly expected?: string;
  readonly origin?: string;
  readonly minimum?: number | bigint;
  readonly maximum?: number | bigint;
  readonly inclusive?: boolean;
  readonly divisor?: number;
  readonly values?: readonly unknown[];
  readonly pattern?: string;
  readonly options?: readonly unknown[];
  readonly errors?: readonly (readonly Issue[])[];
}

/** What a schema was asked about. */
interface Checked {
  readonly input: unknown;
  /** Where it is one of zod's, keys that are nearly right are told from it. */
  readonly schema?: unknown;
  /** How a message names a path of the input. */
  readonly textOf: (path: readonly PropertyKey[]) => string;
}

/** The issues of a schema as problems. */
export const schemaProblems = (issues: readonly ParameterIssue[], checked: Checked): SchemaProblem[] =>
  withoutSuspects(issues.flatMap((issue) => problemsOfIssue(issue, checked)));

/** A key that is missing only because it is misspelt is one mistake: the misspelt key says it. */
export function withoutSuspects(problems: readonly SchemaProblem[]): SchemaProblem[] {
  const meant = new Set(
    problems.flatMap(({ code, path, suggestion }) =>
      code === "unknown_key" && suggestion !== undefined ? [pathText([...path.slice(0, -1), suggestion])] : [],
    ),
  );
  return problems.filter(
    ({ code, path }) => !(["missing_key", "incomplete_profile"].includes(code) && meant.has(pathText(path))),
  );
}

function problemsOfIssue(issue: Issue, checked: Checked): readonly SchemaProblem[] {
  const { input, schema, textOf } = checked;
  const { path } = issue;
  const text = shortened(textOf(path)) || "the document";
  const value = valueAt(input, path);
  const problem = (code: ErrorCode, fault: string, more: Partial<SchemaProblem> = {}): SchemaProblem[] => [
    { code, path, of: "value", message: `${text} ${fault}`, ...more },
  ];
  const mustBe = (what: string) => `must be ${what}, not ${describe(value)}`;
  if (issue.code === "unrecognized_keys") {
    const known = (issue.known ?? keysAt(schema, path)).filter((key) => !Object.hasOwn(value as object, key));
    return (issue.keys ?? []).map((key) => unknownKey([...path, key], known, textOf));
  }
  if (value === undefined) return problem("missing_key", "is missing", { of: "key" });
  switch (issue.code) {
    case "invalid_type": {
      const wanted = issue.expected ?? "";
      if (wanted === "number" || wanted === "int") {
        if (typeof value === "number" && !Number.isFinite(value))
          return problem("out_of_range", mustBe("a finite number"));
        if (isLongInteger(value)) return problem("out_of_range", `is too large: ${shortened(String(value))}`);
      }
      const quote = wanted === "string" && ["number", "boolean"].includes(typeof value) ? "; quote it" : "";
      return problem("invalid_type", mustBe(typeNames[wanted] ?? wanted) + quote);
    }
    case "too_small":
      return problem("out_of_range", mustBe(bound(issue, issue.inclusive ? "at least" : "more than", issue.minimum)));
    case "too_big":
      if (issue.maximum === Number.MAX_SAFE_INTEGER) return problem("out_of_range", `is too large: ${describe(value)}`);
      return problem("out_of_range", mustBe(bound(issue, issue.inclusive ? "at most" : "less than", issue.maximum)));
    case "not_multiple_of":
      return problem("out_of_range", mustBe(`a multiple of ${issue.divisor}`));
    case "invalid_value": {
      const values = issue.values ?? [];
      const allowed = values.length === 1 ? describe(values[0]) : `one of ${values.map(String).join(", ")}`;
      if (!values.some((one) => typeof one === typeof value)) return problem("invalid_type", mustBe(allowed));
      return problem("unsupported_value", mustBe(allowed), suggest(String(value), values.map(String)));
    }
    case "invalid_format":
      if (issue.pattern === String(identifier)) {
        return problem("bad_identifier", mustBe("letters, digits, _, . and - (at least one)"));
      }
      return problem("unsupported_value", `is refused: ${issue.message}`);
    case "invalid_union":
      return unionProblems(issue, checked) ?? problem("unsupported_value", `is refused: ${issue.message}`);
    case "invalid_key":
      return problem("unsupported_value", `is refused: ${issue.message}`, { of: "key" });
    default:
      return problem("unsupported_value", `is refused: ${issue.message}`);
  }
}

/** A key that a mapping does not have. */
export function unknownKey(
  path: readonly PropertyKey[],
  known: readonly string[],
  textOf: Checked["textOf"],
): SchemaProblem {
  const name = String(path.at(-1));
  const meant = suggest(name, known);
  const others = meant.suggestion === undefined && known.length > 0 ? `; others are ${known.join(", ")}` : "";
  const fault = name === "<<" ? "is a merge key, which is not supported: write the keys out" : "is not a known key";
  return { code: "unknown_key", path, of: "key", message: `${shortened(textOf(path))} ${fault}${others}`, ...meant };
}

/** Among more names nobody is helped, and a file of thousands of mistakes would take its time. */
const mostNames = 200;

/** The suggestion of a problem, where a name is close enough. */
export function suggest(name: string, names: Iterable<string>): { suggestion?: string } {
  const candidates = [...names];
  const suggestion = candidates.length > mostNames ? undefined : closest(name, candidates);
  return suggestion === undefined ? {} : { suggestion };
}

/** The problems of the branch that was meant: told by a field, or the only one that takes a value of this type. */
function unionProblems(issue: Issue, checked: Checked): readonly SchemaProblem[] | undefined {
  const { path, message, options, errors } = issue;
  // The path leads to the field that tells the branches apart.
  if (options) return problemsOfIssue({ code: "invalid_value", path, values: options, message }, checked);
  const meant = errors?.filter((branch) => branch.some((inner) => inner.path.length > 0 || inner.keys));
  if (meant?.length !== 1) return undefined;
  return meant[0]!.flatMap((inner) => problemsOfIssue({ ...inner, path: [...path, ...inner.path] }, checked));
}

const typeNames: Record<string, string> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  number: "a number",
  object: "a mapping",
  record: "a mapping",
  string: "a string",
  tuple: "a list",
};

/** Of a number itself, or of how much a text or a list holds. */
function bound({ origin, minimum, maximum }: Issue, side: string, limit: number | bigint | undefined): string {
  const unit = origin === "string" ? " characters" : origin === "array" || origin === "set" ? " entries" : "";
  const length = unit === "" ? "" : "of ";
  return `${length}${side} ${limit ?? minimum ?? maximum}${unit}`;
}

/** Integers that a number cannot hold exactly are read as their digits. */
const isLongInteger = (value: unknown): boolean => typeof value === "string" && /^-?\d{16,}$/.test(value);

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key];
  }
  return value;
}

/** What this code reads of zod's schemas; other schemas have none of it. */
interface ZodLike {
  readonly _zod?: {
    readonly def?: {
      readonly innerType?: ZodLike;
      readonly in?: ZodLike;
      readonly shape?: Readonly<Record<PropertyKey, ZodLike>>;
      readonly element?: ZodLike;
      readonly valueType?: ZodLike;
    };
  };
}

/** The keys that a schema knows of the mapping at a path. */
function keysAt(schema: unknown, path: readonly PropertyKey[]): string[] {
  let at = bare(schema as ZodLike | undefined);
  for (const key of path) {
    const def = at?._zod?.def;
    at = bare(def?.shape?.[key] ?? def?.element ?? def?.valueType);
  }
  return Object.keys(at?._zod?.def?.shape ?? {});
}

/** A schema without what makes it optional, gives it a default or transforms it. */
function bare(schema: ZodLike | undefined): ZodLike | undefined {
  let at = schema;
  for (;;) {
    const def = at?._zod?.def;
    const inner = def?.innerType ?? def?.in;
    if (!inner) return at;
    at = inner;
  }
}
