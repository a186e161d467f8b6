import { WarmrouteError } from "../core/errors.js";
import { disown, isPromise } from "../core/foreign.js";
import { FrozenMap } from "../core/frozen-map.js";
import { describe } from "../core/ids.js";
import type { AttributeSource, RouterOptions } from "./contract.js";

const mostKeys = 16;
const mostBytes = 128;
const utf8 = new TextEncoder();
const fits = (text: unknown) =>
  typeof text === "string" && (text.length * 3 <= mostBytes || utf8.encode(text).length <= mostBytes);

/**
 * What the host tells plugins of a request. Throws `invalid_request` for more than 16 attributes, and for a name or
 * value of more than 128 bytes; the message holds no value.
 */
export function readAttributes(
  hook: NonNullable<RouterOptions["attributes"]>,
  source: AttributeSource,
): ReadonlyMap<string, string> {
  const answer: unknown = hook(source);
  if (isPromise(answer) || typeof answer !== "object" || answer === null) {
    disown(answer);
    const message = "the attributes option must return an object at once, not ";
    throw new WarmrouteError("invalid_config", message + describe(answer), { path: "attributes" });
  }
  const given = Object.entries(answer).filter(([, value]) => value !== undefined);
  if (given.length > mostKeys) {
    throw new WarmrouteError("invalid_request", `a request has at most ${mostKeys} attributes`, { path: "attributes" });
  }
  for (const [name, value] of given) {
    const path = fits(name) ? `attributes.${name}` : "attributes";
    if (fits(name) && fits(value)) continue;
    throw new WarmrouteError("invalid_request", `${path} must be text of at most ${mostBytes} bytes`, { path });
  }
  return new FrozenMap(given as [string, string][]);
}
