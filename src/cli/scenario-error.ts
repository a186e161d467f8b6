import type { z } from "zod";
import { WarmrouteError } from "../core/errors.js";
import { describe, parseU64 } from "../core/ids.js";
import { isLongInteger } from "../replay/index.js";

export function isU64(value: unknown): boolean {
  try {
    parseU64(value, "");
    return true;
  } catch {
    return false;
  }
}

/** What the schema library found wrong, in words for the writer of the scenario. */
export function scenarioError(issue: z.core.$ZodIssue): WarmrouteError {
  const unknown = issue.code === "unrecognized_keys" ? [issue.keys[0]!] : [];
  const path = [...issue.path, ...unknown].reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : text ? `${text}.${String(key)}` : String(key)),
    "",
  );
  return new WarmrouteError("invalid_scenario", `${path || "the scenario"} ${fault(issue)}`, { path });
}

function fault(issue: z.core.$ZodIssue): string {
  const { input } = issue;
  switch (issue.code) {
    case "unrecognized_keys":
      return "is not a known field";
    case "invalid_union": {
      // The schema's only unions are of objects that one of their fields tells apart.
      const given = (input as Record<string, unknown>)[String(issue.discriminator)];
      return given === undefined
        ? "is missing"
        : mustBe(oneOf((issue as { options?: readonly unknown[] }).options ?? []), given);
    }
    case "invalid_value":
      return mustBe(oneOf(issue.values), input);
    case "custom":
      return mustBe("a 64-bit integer", input);
    case "invalid_type":
      if (isLongInteger(input) && (issue.expected === "number" || issue.expected === "int")) return tooLarge(input);
      return mustBe(typeNames[issue.expected] ?? issue.expected, input);
    case "too_small":
    case "too_big": {
      if (issue.origin === "array") return mustBe("a pair of numbers", input);
      if (issue.code === "too_small")
        return mustBe(`${issue.inclusive ? "at least" : "more than"} ${issue.minimum}`, input);
      return issue.maximum === Number.MAX_SAFE_INTEGER ? tooLarge(input) : mustBe(`at most ${issue.maximum}`, input);
    }
    default:
      return issue.message;
  }
}

const typeNames: Record<string, string> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a string",
  tuple: "a pair of numbers",
};

const mustBe = (what: string, given: unknown) =>
  given === undefined ? "is missing" : `must be ${what}, not ${describe(given)}`;

const tooLarge = (given: unknown) => `is too large: ${typeof given === "string" ? given : describe(given)}`;

const oneOf = (values: readonly unknown[]) =>
  values.length === 1 ? describe(values[0]) : `one of ${values.map(String).join(", ")}`;
