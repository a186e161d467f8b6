// What comes out of code that is not ours: it may throw when it is looked at, and be a promise that nobody awaits.
// Nothing here ever throws.
import { WarmrouteError } from "./errors.js";
import { describe, shortened } from "./ids.js";

/** What was thrown, in a few words: an error's message, else the value. */
export function reasonOf(thrown: unknown): string {
  try {
    const text: unknown = thrown instanceof Error ? thrown.message : thrown;
    if (typeof text === "string" && text !== "") return shortened(text);
    if (thrown instanceof Error) return "an error without a message";
  } catch {
    // A proxy, or a getter that throws.
  }
  return describe(thrown);
}

/** Whether a value is of a class of ours. */
export function isOf<T>(value: unknown, type: abstract new (...args: never[]) => T): value is T {
  try {
    return value instanceof type;
  } catch {
    return false;
  }
}

/** Whether an error is one of ours. */
export const isWarmrouteError = (error: unknown): error is WarmrouteError => isOf(error, WarmrouteError);

/** Whether `await` would wait for a value. */
export function isPromise(value: unknown): boolean {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  try {
    return value instanceof Promise || typeof (value as { then?: unknown }).then === "function";
  } catch {
    return false;
  }
}

/** Takes on a promise that nobody awaits, so that its rejection does not end the process; it goes to `failed`. */
export function disown(value: unknown, failed: (reason: unknown) => void = () => {}): void {
  try {
    if (value instanceof Promise) {
      // `then` itself reads it, and where it throws the rejection would stay unhandled.
      Object.defineProperty(value, "constructor", { value: Promise });
      Promise.prototype.then.call(value, undefined, failed);
      return;
    }
  } catch {
    // It is not what it seems to be.
  }
  new Promise((settle) => settle(value)).catch(failed);
}
