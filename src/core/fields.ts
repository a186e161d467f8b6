// Checks the bags of options and requests that callers hand in: known fields only, each of its kind.
import { type ErrorCode, WarmrouteError } from "./errors.js";
import { describe, shortened } from "./ids.js";
import { workerRoles } from "./types.js";

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isCall = (value: unknown) => typeof value === "function";

const kinds = {
  text: { wanted: "a non-empty string", fits: (value) => typeof value === "string" && value !== "" },
  object: { wanted: "an object", fits: isObject },
  list: {
    wanted: "a list",
    fits: (value) => Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView)),
  },
  flag: { wanted: "true or false", fits: (value) => typeof value === "boolean" },
  call: { wanted: "a function", fits: isCall },
  count: {
    wanted: "a positive whole number",
    fits: (value) => Number.isSafeInteger(value) && (value as number) > 0,
  },
  role: {
    wanted: `one of ${workerRoles.join(", ")}`,
    fits: (value) => (workerRoles as readonly unknown[]).includes(value),
  },
  // By shape: runtimes and test tools bring signals of their own.
  signal: { wanted: "an AbortSignal", fits: (value) => isObject(value) && typeof value.aborted === "boolean" },
  any: { wanted: "", fits: () => true },
} as const satisfies Record<string, { wanted: string; fits(value: unknown): boolean }>;

export type Kind = keyof typeof kinds;
export type Fields = ReadonlyMap<string, Kind>;

/** The fields of a type; the compiler sees that none is missing. */
export const fieldsOf = <T>(fields: { readonly [K in keyof T]-?: Kind }): Fields =>
  new Map(Object.entries<Kind>(fields as Record<string, Kind>));

/**
 * Checks that `input` is an object with only known fields, each of its kind; values are read where they are used.
 * Throws `code` with the field as its path, behind `prefix`.
 */
export function checkFields(input: unknown, fields: Fields, what: string, code: ErrorCode, prefix = ""): void {
  if (!isObject(input)) throw wrong(code, what, "an object", input);
  for (const key in input) {
    const kind = fields.get(key);
    if (kind === undefined) {
      throw new WarmrouteError(code, `${what} has an unknown field: ${shortened(key)}`, { path: prefix + key });
    }
    const value = input[key];
    const { wanted, fits } = kinds[kind];
    if (value !== undefined && !fits(value)) throw wrong(code, prefix + key, wanted, value);
  }
}

/** Checks that an object, where it is given, has these methods. Throws `code`. */
export function checkMethods(object: unknown, methods: readonly string[], path: string, code: ErrorCode): void {
  if (object === undefined) return;
  if (typeof object !== "object" || object === null) throw wrong(code, path, "an object", object);
  for (const method of methods) {
    const value = (object as Record<string, unknown>)[method];
    if (!isCall(value)) throw wrong(code, `${path}.${method}`, "a function", value);
  }
}

const graceFields = fieldsOf<{ graceMs?: number }>({ graceMs: "any" });

/** Milliseconds that what is in flight may go on when something closes; 0 unless given. Throws `code`. */
export function readGraceMs(options: { graceMs?: number } = {}, code: ErrorCode = "invalid_request"): number {
  checkFields(options, graceFields, "options", code);
  const { graceMs = 0 } = options;
  if (Number.isFinite(graceMs) && graceMs >= 0) return graceMs;
  throw wrong(code, "graceMs", "a finite number of milliseconds, at least 0", graceMs);
}

function wrong(code: ErrorCode, path: string, wanted: string, value: unknown): WarmrouteError {
  return new WarmrouteError(code, `${path} must be ${wanted}, not ${describe(value)}`, { path });
}
