// Values that the author of a plugin names for a suite: labels of its workers, attributes of its requests.
import { WarmrouteError } from "../core/errors.js";
import { checkFields } from "../core/fields.js";
import { describe } from "../core/ids.js";

/** Names with the values that each takes in turn. */
export type Values = Readonly<Record<string, readonly string[]>>;

/** What was named under `what`, the only option. Throws `invalid_request` for others, and lists that are none. */
export function readValues<K extends string>(options: { readonly [key in K]?: Values }, what: K): Values | undefined {
  checkFields(options, new Map([[what, "object"]]), "options", "invalid_request");
  for (const [name, list] of Object.entries(options[what] ?? {})) {
    if (Array.isArray(list) && list.length > 0 && list.every((value) => typeof value === "string")) continue;
    const path = `${what}.${name}`;
    throw new WarmrouteError(
      "invalid_request",
      `${path} must be a list of at least one string, not ${describe(list)}`,
      {
        path,
      },
    );
  }
  return options[what];
}

/** The `i`-th combination of values, each name with one. */
export function combination(values: Values, i: number): Record<string, string> {
  let rest = i;
  return Object.fromEntries(
    Object.entries(values).map(([name, list]) => {
      const value = list[rest % list.length]!;
      rest = Math.floor(rest / list.length);
      return [name, value];
    }),
  );
}

/** In words: `zone (east, west) and tier (gold)`. */
export const listed = (values: Values): string =>
  Object.entries(values)
    .map(([name, list]) => `${name} (${list.join(", ")})`)
    .join(" and ");
