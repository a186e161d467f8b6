import { type ErrorCode, WarmrouteError } from "../core/errors.js";
import { describe, parseU32, workerIdString } from "../core/ids.js";
import { type SessionContext, workerRoles } from "../core/types.js";
import { RouterPlugins } from "../plugins/bundle.js";
import type { ReserveRequest, RouterOptions, SelectRequest, SnapshotPart } from "./contract.js";

type Kind = "text" | "object" | "list" | "flag" | "call" | "role" | "any";

const wanted: Record<Exclude<Kind, "any">, string> = {
  text: "a non-empty string",
  object: "an object",
  list: "a list",
  flag: "true or false",
  call: "a function",
  role: `one of ${workerRoles.join(", ")}`,
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
    case "call":
      return typeof value === "function";
    case "role":
      return (workerRoles as readonly unknown[]).includes(value);
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
  role: "role",
  priorityJump: "any",
  strictPriority: "any",
  policyClass: "text",
  sessionId: "text",
  sessionContext: "object",
  affinityTarget: "object",
  lifecycle: "flag",
  explain: "flag",
});

const sessionFields = fieldsOf<SessionContext>({
  sessionId: "text",
  parentSessionId: "text",
  sessionFinal: "flag",
  inputTrigger: "any",
});
const inputTriggers: readonly unknown[] = ["user_message", "tool_result", "other"];

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
  plugins: "object",
  policy: "object",
  attributes: "call",
  classifyTimeoutMs: "any",
  maxPending: "any",
  allowPriority: "flag",
  tokenizer: "object",
  fetch: "call",
  log: "object",
});

/** Checks the shape of a selection request. Throws `invalid_request` naming the field. */
export function checkSelect(request: unknown): void {
  check(request, selectFields, "request", "invalid_request");
  const { loraName, cacheSalt, priorityJump, strictPriority, sessionContext } = request as SelectRequest;
  for (const [path, value] of [
    ["loraName", loraName],
    ["cacheSalt", cacheSalt],
  ] as const) {
    // Empty is the same as absent (spec: indexer.md §1.2).
    if (value !== undefined && typeof value !== "string") {
      throw new WarmrouteError("invalid_request", `${path} must be a string, not ${describe(value)}`, { path });
    }
  }
  if (priorityJump !== undefined && !Number.isFinite(priorityJump)) {
    throw new WarmrouteError("invalid_request", "priorityJump must be a finite number of seconds", {
      path: "priorityJump",
    });
  }
  if (strictPriority !== undefined) parseU32(strictPriority, "strictPriority");
  if (sessionContext !== undefined) checkSession(sessionContext);
}

/** Checks what a request says of its session. Throws `invalid_request`. */
function checkSession(session: object): void {
  check(session, sessionFields, "sessionContext", "invalid_request");
  const { sessionId, inputTrigger } = session as SessionContext;
  if (sessionId === undefined) {
    throw new WarmrouteError("invalid_request", "sessionContext.sessionId is missing", { path: "sessionContext" });
  }
  if (inputTrigger !== undefined && !inputTriggers.includes(inputTrigger)) {
    const path = "sessionContext.inputTrigger";
    throw new WarmrouteError("invalid_request", `${path} must be one of ${inputTriggers.join(", ")}`, { path });
  }
}

/** Checks a reservation; answers its rank, and what it charges. Throws `invalid_request` naming the field. */
export function checkReserve(request: unknown): { workerId: string; dpRank: number; charged: number } {
  check(request, reserveFields, "request", "invalid_request");
  const given = request as ReserveRequest;
  for (const key of ["requestId", "worker", "sequenceHashes", "islTokens"] as const) {
    if (given[key] === undefined) {
      throw new WarmrouteError("invalid_request", `${key} is missing`, { path: key });
    }
  }
  const workerId = workerIdString(given.worker.workerId, "worker.workerId", "invalid_request");
  const dpRank = parseU32(given.worker.dpRank ?? 0, "worker.dpRank");
  const { islTokens, effectivePrefillTokens: charged = islTokens } = given;
  for (const [path, value] of Object.entries({ islTokens, effectivePrefillTokens: charged })) {
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new WarmrouteError("invalid_request", `${path} must be a whole number of tokens`, { path });
    }
  }
  if (charged > islTokens) {
    throw new WarmrouteError("invalid_request", "effectivePrefillTokens is more than islTokens", {
      path: "effectivePrefillTokens",
    });
  }
  return { workerId, dpRank, charged };
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
  const { blockNames, plugins } = options as RouterOptions;
  if (plugins !== undefined && !(plugins instanceof RouterPlugins)) {
    const message = "plugins must be what registry.resolvePlugins() returned";
    throw new WarmrouteError("invalid_config", message, { path: "plugins" });
  }
  for (const path of ["classifyTimeoutMs", "maxPending"] as const) {
    const value = (options as RouterOptions)[path];
    if (value !== undefined && !(Number.isSafeInteger(value) && value > 0)) {
      throw new WarmrouteError("invalid_config", `${path} must be a positive whole number, not ${describe(value)}`, {
        path,
      });
    }
  }
  if (blockNames !== undefined && blockNames !== "engine" && blockNames !== "sequence") {
    throw new WarmrouteError("invalid_config", `blockNames must be engine or sequence, not ${describe(blockNames)}`, {
      path: "blockNames",
    });
  }
}
