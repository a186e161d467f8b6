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

/** The host's own fault, and no client's. */
const wrongHook = (what: string) =>
  new WarmrouteError("invalid_plugin", `the attributes option ${what}`, { path: "attributes" });

/**
 * What the host tells plugins of a request. Throws `invalid_request` for a name or value of more than 128 bytes, and
 * `invalid_plugin` for an answer that is no object of at most 16 strings; the message holds no value.
 */
export function readAttributes(
  hook: NonNullable<RouterOptions["attributes"]>,
  source: AttributeSource,
): ReadonlyMap<string, string> {
  const answer: unknown = hook(source);
  const isRecord = typeof answer === "object" && answer !== null && !(Symbol.iterator in answer);
  if (!isRecord || isPromise(answer)) {
    disown(answer);
    throw wrongHook(`must return an object at once, not ${describe(answer)}`);
  }
  const given = Object.entries(answer).filter(([, value]) => value !== undefined);
  if (given.length > mostKeys) {
    throw wrongHook(`must return at most ${mostKeys} attributes, not ${given.length}`);
  }
  for (const [name, value] of given) {
    if (typeof value !== "string") {
      disown(value);
      throw wrongHook(`must return strings, not ${describe(value)}`);
    }
    const path = fits(name) ? `attributes.${name}` : "attributes";
    if (fits(name) && fits(value)) continue;
    throw new WarmrouteError("invalid_request", `${path} must be text of at most ${mostBytes} bytes`, { path });
  }
  return new FrozenMap(given as [string, string][]);
}
