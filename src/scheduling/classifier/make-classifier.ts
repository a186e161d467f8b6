import { WarmrouteError } from "../../core/errors.js";
import { describe } from "../../core/ids.js";
import type {
  RequestClassifier,
  RequestClassifierContext,
  RequestClassifierFactory,
} from "../../plugins/request-classifier/contract.js";

const methods = ["classify", "onEvent", "close"] as const;

/**
 * One router's classifier. Throws `provider` when the factory throws, and `invalid_plugin` when it answers
 * anything but an object whose classify, onEvent and close are functions where they exist.
 */
export function makeClassifier(
  factory: RequestClassifierFactory,
  context: RequestClassifierContext,
): RequestClassifier {
  let made: unknown;
  try {
    made = factory(context);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : describe(cause);
    throw new WarmrouteError("provider", `the factory of the request classifier threw: ${why}`, { cause });
  }
  if (typeof made !== "object" || made === null) {
    throw garbage(`answered ${describe(made)}, not a classifier`);
  }
  if ("then" in made && typeof made.then === "function") {
    Promise.resolve(made).catch(() => {});
    throw garbage("answered a promise; it must not be async");
  }
  for (const method of methods) {
    const value: unknown = (made as Record<string, unknown>)[method];
    if (value !== undefined && typeof value !== "function") {
      throw garbage(`answered a classifier whose ${method} is no function`);
    }
  }
  return made as RequestClassifier;
}

const garbage = (what: string) => new WarmrouteError("invalid_plugin", `the factory of the request classifier ${what}`);
