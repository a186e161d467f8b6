import { type ErrorCode, WarmrouteError } from "./errors.js";

/** A u64 as a caller may write it; output is always the decimal string. */
export type U64Input = string | number | bigint;

const MAX = (1n << 64n) - 1n;
const decimal = /^-?\d{1,20}$/;

/**
 * Reads a u64: a decimal string, a bigint, or a safe integer. Signed negatives are re-read bit for bit
 * (−2 → 18446744073709551614), as engines send hashes signed. `path` names the field in the error.
 */
export function parseU64(value: unknown, path: string, code: ErrorCode = "invalid_request"): bigint {
  let n: bigint | undefined;
  if (typeof value === "bigint") n = value;
  else if (typeof value === "number" && Number.isSafeInteger(value)) n = BigInt(value);
  else if (typeof value === "string" && decimal.test(value)) n = BigInt(value);
  if (n === undefined || n > MAX || n < -(1n << 63n)) {
    throw new WarmrouteError(code, `${path} is not a 64-bit integer: ${describe(value)}`, { path });
  }
  return BigInt.asUintN(64, n);
}

/** Canonical decimal string of a worker id. */
export function workerIdString(value: unknown, path = "workerId", code: ErrorCode = "invalid_worker"): string {
  return parseU64(value, path, code).toString();
}

/** Reads a u32 such as a `dp_rank`. */
export function parseU32(value: unknown, path: string, code: ErrorCode = "invalid_request"): number {
  if (typeof value !== "number" || !Number.isInteger(value) || value < 0 || value > 0xffffffff) {
    throw new WarmrouteError(code, `${path} is not an integer from 0 to 4294967295: ${describe(value)}`, { path });
  }
  return value;
}

/** A text of any length as a message quotes it: at most 200 characters. */
export const shortened = (text: string): string => (text.length > 200 ? `${text.slice(0, 197)}...` : text);

/** A short form of any value for a message: never more than 40 characters of it. Never throws. */
export function describe(value: unknown): string {
  let text: string;
  if (typeof value === "string") text = JSON.stringify(value.length > 40 ? value.slice(0, 41) : value);
  else if (typeof value === "bigint") text = `${value}n`;
  else if (typeof value === "function") text = "a function";
  else if (typeof value === "object" && value !== null) text = isArray(value) ? "an array" : "an object";
  else text = String(value);
  return text.length > 40 ? `${text.slice(0, 37)}...` : text;
}

function isArray(value: object): boolean {
  try {
    return Array.isArray(value);
  } catch {
    // A proxy that was revoked.
    return false;
  }
}
