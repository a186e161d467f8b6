// What the rules have in common: values that may be of any type, and the problems they find.
import type { ErrorCode } from "../../core/errors.js";
import { shortened } from "../../core/ids.js";
import { identifier, listed, sortedNames } from "../names.js";
import { pathText } from "../problem.js";
import type { SchemaProblem } from "../schema-issues.js";

export type Mapping = Readonly<Record<string, unknown>>;
export type Path = readonly PropertyKey[];

export const asMapping = (value: unknown): Mapping | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Mapping) : undefined;
export const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
export const asName = (value: unknown): string | undefined =>
  typeof value === "string" && identifier.test(value) ? value : undefined;

/** A problem whose message begins with its path. */
export function problem(
  code: ErrorCode,
  path: Path,
  of: "key" | "value",
  fault: string,
  suggestion = {},
): SchemaProblem {
  return { code, path, of, message: `${shortened(pathText(path))} ${fault}`, ...suggestion };
}

/** Each name that an earlier one has already. */
export function repeats(names: readonly (string | undefined)[], pathOf: (i: number) => Path): SchemaProblem[] {
  const seen = new Map<string, number>();
  return names.flatMap((name, i) => {
    const first = name === undefined ? undefined : seen.get(name);
    if (first !== undefined) {
      return [
        problem(
          "duplicate_name",
          pathOf(i),
          "value",
          `repeats the name ${shortened(name!)} of ${pathText(pathOf(first))}`,
        ),
      ];
    }
    if (name !== undefined) seen.set(name, i);
    return [];
  });
}

/** The names that could have been meant; not all of very many. */
export const choices = (names: Iterable<string>) => {
  const all = sortedNames(names);
  return all.length > 20 ? `${listed(all.slice(0, 20))} and ${all.length - 20} more` : listed(all);
};
