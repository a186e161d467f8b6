// Values that the author of a plugin names for a suite: labels of its workers, attributes of its requests.
import { WarmrouteError } from "../core/errors.js";
import { checkFields } from "../core/fields.js";
import { describe } from "../core/ids.js";
import type { Random } from "../core/random.js";

/** Names with the values that each takes in turn. */
export type Values = Readonly<Record<string, readonly string[]>>;

/** Labels of workers unless the author names others. */
export const defaultLabels: Values = { zone: ["zone-0", "zone-1"] };

/** Attributes of requests, beside those that the author names. */
export const defaultAttributes: Values = {
  tenant: ["acme", "globex", "initech"],
  tier: ["gold", "silver", ""],
  user: ["ann", "bob", "cy"],
};

/** Throws `invalid_request` for options other than `names`, and for values that are no lists of at least one string. */
export function checkValues(options: { readonly [name: string]: Values | undefined }, names: readonly string[]): void {
  checkFields(options, new Map(names.map((name) => [name, "object"])), "options", "invalid_request");
  for (const [option, values = {}] of Object.entries(options)) {
    for (const [name, list] of Object.entries(values)) {
      if (Array.isArray(list) && list.length > 0 && list.every((value) => typeof value === "string")) continue;
      const path = `${option}.${name}`;
      const wrong = `${path} must be a list of at least one string, not ${describe(list)}`;
      throw new WarmrouteError("invalid_request", wrong, { path });
    }
  }
}

/** Some of the names, each with one of its values. */
export function someOf(random: Random, values: Values): Record<string, string> {
  const out: Record<string, string> = {};
  for (const [name, list] of Object.entries(values)) {
    const value = list[random.below(list.length + 1)];
    if (value !== undefined) out[name] = value;
  }
  return out;
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
