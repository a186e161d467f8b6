// The result as a person reads it.
import type { Result } from "./rows.js";

const digits = (value: number): string =>
  value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);

/** Whether the ratio reaches a bar. */
export const reaches = (result: Result, bar: number): boolean =>
  result.ratio !== undefined && (result.better === "higher" ? result.ratio >= bar : result.ratio <= bar);

function verdict(result: Result): string {
  if (result.error !== undefined) return "ERROR";
  if (result.skipped !== undefined) return "skipped";
  if (result.aim !== undefined && reaches(result, result.aim)) return "aim reached";
  return reaches(result, result.target) ? "met" : "missed";
}

/** One line of the table. */
export function line(result: Result): string {
  const sign = result.better === "higher" ? "≥" : "≤";
  const ratio = result.ratio === undefined ? "-" : digits(result.ratio);
  const bars = `${sign} ${digits(result.target)}${result.aim === undefined ? "" : ` (${digits(result.aim)})`}`;
  const note = result.error ?? result.skipped ?? `${result.of} ÷ ${result.against}`;
  return `${result.name.padEnd(36)}${ratio.padStart(9)}  ${bars.padEnd(18)}${verdict(result).padEnd(13)}${note}`;
}

export const heading = `${"row".padEnd(36)}${"ratio".padStart(9)}  ${"target (aim)".padEnd(18)}${"verdict".padEnd(13)}what ÷ against what`;
