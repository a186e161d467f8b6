import { type ErrorCode, WarmrouteError } from "../core/errors.js";
import { describe } from "../core/ids.js";
import type { ReserveRequest, RouterOptions, SelectRequest, SnapshotPart } from "./contract.js";

type Kind = "text" | "object" | "list" | "flag" | "any";

const wanted: Record<Exclude<Kind, "any">, string> = {
  text: "a non-empty string",
  object: "an object",
  list: "a list",
  flag: "true or false",
};

function fits(kind: Kind, value: unknown): boolean {
  switch (kind) {
    case "text":
      return typeof value === "string" && value !== "";
    case "object":
      return typeof value === "object" && value !== null && !Array.isArray(value);
    case "list":
      return Array.isArray(value) || ArrayBuffer.isView(value);
    case "flag":
      return typeof value === "boolean";
    case "any":
      return true;
  }
}

/** Checks that `input` is an object with only known fields, each of its kind; values are read where they are used. */
function check(input: unknown, fields: ReadonlyMap<string, Kind>, what: string, code: ErrorCode): void {
  if (!fits("object", input)) {
    throw new WarmrouteError(code, `${what} must be an object, not ${describe(input)}`, { path: what });
  }
  for (const key in input as object) {
    const kind = fields.get(key);
    if (kind === undefined) {
      throw new WarmrouteError(code, `${what} has an unknown field: ${key}`, { path: key });
    }
    const value = (input as Record<string, unknown>)[key];
    if (value !== undefined && kind !== "any" && !fits(kind, value)) {
      throw new WarmrouteError(code, `${key} must be ${wanted[kind]}, not ${describe(value)}`, { path: key });
    }
  }
}

const fieldsOf = <T>(fields: { readonly [K in keyof T]-?: Kind }): ReadonlyMap<string, Kind> =>
  new Map(Object.entries<Kind>(fields as Record<string, Kind>));

const selectFields = fieldsOf<SelectRequest>({
  requestId: "text",
  tokens: "any",
  routingGroup: "text",
  loraName: "any",
  cacheSalt: "any",
  expectedOutputTokens: "any",
  pinnedWorker: "object",
  allowedWorkerIds: "list",
  routingConstraints: "object",
  configOverride: "object",
  explain: "flag",
});

const reserveFields = fieldsOf<ReserveRequest>({
  requestId: "text",
  worker: "object",
  sequenceHashes: "list",
  islTokens: "any",
  effectivePrefillTokens: "any",
});

const optionFields = fieldsOf<RouterOptions>({
  model: "text",
  blockSize: "any",
  seed: "any",
  config: "object",
  workers: "list",
  blockNames: "any",
  memoryBudgetBytes: "any",
  maxRanks: "any",
  clock: "object",
});

/** Checks the shape of a selection request. Throws `invalid_request` naming the field. */
export function checkSelect(request: unknown): void {
  check(request, selectFields, "request", "invalid_request");
  const { loraName, cacheSalt } = request as SelectRequest;
  for (const [path, value] of [
    ["loraName", loraName],
    ["cacheSalt", cacheSalt],
  ] as const) {
    // Empty is the same as absent (spec: indexer.md §1.2).
    if (value !== undefined && typeof value !== "string") {
      throw new WarmrouteError("invalid_request", `${path} must be a string, not ${describe(value)}`, { path });
    }
  }
}

/** Checks the shape of a reservation. Throws `invalid_request` naming the field. */
export function checkReserve(request: unknown): void {
  check(request, reserveFields, "request", "invalid_request");
  for (const key of ["requestId", "worker", "sequenceHashes", "islTokens"] as const) {
    if ((request as ReserveRequest)[key] === undefined) {
      throw new WarmrouteError("invalid_request", `${key} is missing`, { path: key });
    }
  }
}

const allParts: readonly SnapshotPart[] = ["index", "load", "random"];

/** The parts of a snapshot that are asked for; all unless given. Throws `invalid_request`. */
export function readParts(options: unknown, field: "include" | "parts"): readonly SnapshotPart[] {
  check(options, new Map<string, Kind>([[field, "list"]]), "options", "invalid_request");
  const parts = (options as Record<string, readonly SnapshotPart[] | undefined>)[field] ?? allParts;
  for (const part of parts) {
    if (!allParts.includes(part)) {
      const message = `${field} must list parts of ${allParts.join(", ")}, not ${describe(part)}`;
      throw new WarmrouteError("invalid_request", message, { path: field });
    }
  }
  return parts;
}

/** Checks the shape of a router's options. Throws `invalid_config` naming the field. */
export function checkOptions(options: unknown): void {
  check(options, optionFields, "options", "invalid_config");
  const { blockNames } = options as RouterOptions;
  if (blockNames !== undefined && blockNames !== "engine" && blockNames !== "sequence") {
    throw new WarmrouteError("invalid_config", `blockNames must be engine or sequence, not ${describe(blockNames)}`, {
      path: "blockNames",
    });
  }
}
