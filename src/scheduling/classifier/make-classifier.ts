import { closest } from "../../core/closest.js";
import { WarmrouteError } from "../../core/errors.js";
import { disown, isPromise, reasonOf } from "../../core/foreign.js";
import { describe, shortened } from "../../core/ids.js";
import type {
  RequestClassifier,
  RequestClassifierContext,
  RequestClassifierFactory,
} from "../../plugins/request-classifier/contract.js";

const methods = ["classify", "onEvent", "close"] as const;

/**
 * One router's classifier, its methods read once. Throws `provider` when the factory throws, and `invalid_plugin` when
 * it answers anything but an object whose classify, onEvent and close are functions where they exist.
 */
export function makeClassifier(
  factory: RequestClassifierFactory,
  context: RequestClassifierContext,
): RequestClassifier {
  let made: unknown;
  try {
    made = factory(Object.freeze(context));
  } catch (cause) {
    throw new WarmrouteError("provider", `the factory of the request classifier threw: ${reasonOf(cause)}`, { cause });
  }
  if (typeof made !== "object" || made === null) {
    throw garbage(`answered ${describe(made)}, not a classifier`);
  }
  if (isPromise(made)) {
    disown(made);
    throw garbage("answered a promise; it must not be async");
  }
  const classifier: Record<string, unknown> = {};
  for (const name of methods) {
    let method: unknown;
    try {
      method = (made as Record<string, unknown>)[name];
    } catch (cause) {
      throw garbage(`answered a classifier whose ${name} cannot be read: ${reasonOf(cause)}`, cause);
    }
    if (method === undefined) continue;
    if (typeof method !== "function") throw garbage(`answered a classifier whose ${name} is no function`);
    classifier[name] = Function.prototype.bind.call(method, made);
  }
  for (const name of Object.keys(made)) {
    const meant = Object.hasOwn(classifier, name) ? undefined : closest(name, methods);
    if (meant !== undefined) throw garbage(`answered a classifier with ${shortened(name)}; did you mean ${meant}?`);
  }
  return classifier;
}

const garbage = (what: string, cause?: unknown) =>
  new WarmrouteError("invalid_plugin", `the factory of the request classifier ${what}`, { cause });
