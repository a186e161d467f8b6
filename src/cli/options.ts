import { WarmrouteError } from "../core/errors.js";
import { describe } from "../core/ids.js";

/** A wrong option; `path` is the option, and `suggestion` goes into `details`. */
export function usageError(option: string, message: string, suggestion?: string): WarmrouteError {
  const details = suggestion === undefined ? {} : { suggestion };
  return new WarmrouteError("invalid_usage", message, { path: option, details });
}

/** Reads a whole number from `least` to `most`. */
export function wholeOption(option: string, text: string, most: number, least = 1): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw usageError(option, `${option} must be a whole number from ${least} to ${most}, not ${describe(text)}`);
}

/** Reads a number from `least` to `most`. */
export function numberOption(option: string, text: string, least: number, most: number): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (value >= least && value <= most) return value;
  throw usageError(option, `${option} must be a number from ${least} to ${most}, not ${describe(text)}`);
}
