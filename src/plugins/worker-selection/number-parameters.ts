import { describe } from "../../core/ids.js";
import type { ParameterIssue, ParameterSchema } from "../parameters.js";

/** The range of one number; whole numbers only with `integer`. */
export interface NumberRange {
  readonly min: number;
  readonly max: number;
  readonly integer?: boolean;
}

/** An issue as zod's issues are: with the value, and what was wanted instead. */
interface NumberIssue extends ParameterIssue {
  readonly input: unknown;
  readonly expected?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly inclusive?: true;
}

/** A strict schema of optional numbers. It needs no schema library, which importing the router must not load. */
export function numberParameters<K extends string>(
  ranges: Readonly<Record<K, NumberRange>>,
): ParameterSchema<Partial<Record<K, number>>> {
  return {
    safeParse(input) {
      if (typeof input !== "object" || input === null || Array.isArray(input)) {
        const issue = { code: "invalid_type", expected: "object", path: [], message: "must be a mapping", input };
        return { success: false, error: { issues: [issue] } };
      }
      const given = input as Readonly<Record<string, unknown>>;
      const issues: ParameterIssue[] = [];
      const data: Partial<Record<K, number>> = {};
      for (const key of Object.keys(ranges) as K[]) {
        if (!Object.hasOwn(given, key) || given[key] === undefined) continue;
        const issue = fault(key, given[key], ranges[key]);
        if (issue) issues.push(issue);
        else data[key] = given[key] as number;
      }
      const keys = Object.keys(given).filter((key) => !Object.hasOwn(ranges, key));
      if (keys.length > 0) {
        const message = `unknown parameters: ${keys.join(", ")}`;
        issues.push({ code: "unrecognized_keys", keys, known: Object.keys(ranges), path: [], message });
      }
      return issues.length > 0 ? { success: false, error: { issues } } : { success: true, data };
    },
  };
}

function fault(key: string, value: unknown, { min, max, integer }: NumberRange): NumberIssue | undefined {
  const kind = integer ? "a whole number" : "a number";
  const bound = max >= Number.MAX_SAFE_INTEGER ? `${kind} of at least ${min}` : `${kind} from ${min} to ${max}`;
  const found = { path: [key], message: `must be ${bound}, not ${describe(value)}`, input: value };
  if (typeof value !== "number" || Number.isNaN(value)) return { code: "invalid_type", expected: "number", ...found };
  if (value < min) return { code: "too_small", minimum: min, inclusive: true, ...found };
  if (value > max) return { code: "too_big", maximum: max, inclusive: true, ...found };
  if (integer && !Number.isInteger(value)) return { code: "invalid_type", expected: "int", ...found };
  return undefined;
}
