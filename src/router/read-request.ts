import { longestTimerMs } from "../core/clock.js";
import { parseConfig } from "../core/config.js";
import { WarmrouteError } from "../core/errors.js";
import { checkFields, checkMethods, type Fields, fieldsOf } from "../core/fields.js";
import { describe, parseU32 } from "../core/ids.js";
import { readRank } from "../core/rank.js";
import type { SessionContext } from "../core/types.js";
import { RouterPlugins } from "../plugins/bundle.js";
import { type BusyThresholds, thresholdsOf } from "../scheduling/overload.js";
import type {
  CallOptions,
  ReserveRequest,
  RouteOptions,
  Router,
  RouterOptions,
  SelectRequest,
  SnapshotPart,
} from "./contract.js";

const selectFields = fieldsOf<SelectRequest>({
  requestId: "text",
  tokens: "any",
  tokensExact: "flag",
  unitsPerToken: "count",
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
  classifyTimeoutMs: "count",
  maxPending: "count",
  allowPriority: "flag",
  prefillLoadModel: "call",
  decisionLog: "any",
  tokenizer: "object",
  fetch: "call",
  log: "object",
});

const callFields = fieldsOf<CallOptions>({ signal: "signal", headers: "any", auth: "any", body: "any" });
const routeFields = fieldsOf<RouteOptions>({ signal: "signal", headers: "any", auth: "any", path: "text" });
const retryFields = fieldsOf<Pick<CallOptions, "signal">>({ signal: "signal" });

/** Checks what goes with a call. Throws `invalid_request` naming the field. */
const checker = (fields: Fields) => (options: unknown) => checkFields(options, fields, "options", "invalid_request");
export const checkCallOptions = checker(callFields);
export const checkRouteOptions = checker(routeFields);
export const checkRetryOptions = checker(retryFields);

/** The headers that go with a call. Throws `invalid_request` for what are none. */
export function readHeaders(headers: HeadersInit | undefined): Headers {
  try {
    return new Headers(headers);
  } catch {
    // The reason could quote a value.
    throw new WarmrouteError("invalid_request", "headers must be names and values of HTTP headers", {
      path: "headers",
    });
  }
}

type OverlapPrompt = Parameters<Router["overlap"]>[0];
type TokenPrompt = Extract<OverlapPrompt, { tokens: unknown }>;
const tokenPromptFields = fieldsOf<TokenPrompt>({ tokens: "any", loraName: "any", cacheSalt: "any" });
const hashPromptFields = fieldsOf<Exclude<OverlapPrompt, TokenPrompt>>({ blockHashes: "list" });

/** Checks what `overlap` is asked about: tokens or block hashes. Throws `invalid_request` naming the field. */
export function checkOverlap(prompt: unknown): void {
  const { tokens, blockHashes } = (prompt ?? {}) as Record<string, unknown>;
  if (typeof prompt !== "object" || (tokens === undefined) === (blockHashes === undefined)) {
    throw new WarmrouteError("invalid_request", "give either tokens or blockHashes", { path: "tokens" });
  }
  checkFields(prompt, tokens === undefined ? hashPromptFields : tokenPromptFields, "prompt", "invalid_request");
  if (tokens !== undefined) checkSeeds(prompt as TokenPrompt);
}

/** Checks the shape of a selection request. Throws `invalid_request` naming the field. */
export function checkSelect(request: unknown): void {
  checkFields(request, selectFields, "request", "invalid_request");
  checkSeeds(request as SelectRequest);
  const { priorityJump, strictPriority, sessionContext, sessionId } = request as SelectRequest;
  if (priorityJump !== undefined && !Number.isFinite(priorityJump)) {
    throw new WarmrouteError("invalid_request", "priorityJump must be a finite number of seconds", {
      path: "priorityJump",
    });
  }
  if (strictPriority !== undefined) parseU32(strictPriority, "strictPriority");
  if (sessionContext === undefined) return;
  checkSession(sessionContext);
  if (sessionId !== undefined && sessionId !== sessionContext.sessionId) {
    throw new WarmrouteError("invalid_request", "sessionId is another one than sessionContext.sessionId", {
      path: "sessionId",
    });
  }
}

/** What seeds a prompt's hashes beside its tokens; empty is the same as absent (spec: indexer.md §1.2). */
function checkSeeds({ loraName, cacheSalt }: { loraName?: unknown; cacheSalt?: unknown }): void {
  for (const [path, value] of [
    ["loraName", loraName],
    ["cacheSalt", cacheSalt],
  ] as const) {
    if (value !== undefined && typeof value !== "string") {
      throw new WarmrouteError("invalid_request", `${path} must be a string, not ${describe(value)}`, { path });
    }
  }
}

/** Checks what a request says of its session. Throws `invalid_request`. */
function checkSession(session: object): void {
  checkFields(session, sessionFields, "sessionContext", "invalid_request", "sessionContext.");
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
  checkFields(request, reserveFields, "request", "invalid_request");
  const given = request as ReserveRequest;
  for (const key of ["requestId", "worker", "sequenceHashes", "islTokens"] as const) {
    if (given[key] === undefined) {
      throw new WarmrouteError("invalid_request", `${key} is missing`, { path: key });
    }
  }
  const { workerId, dpRank = 0 } = readRank(given.worker, "worker");
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

const thresholdFields = fieldsOf<BusyThresholds>({
  activeDecodeBlocksThreshold: "any",
  activePrefillTokensThreshold: "any",
  activePrefillTokensThresholdFrac: "any",
});

/** Busy thresholds as a caller gives them; those left out are off. Throws `invalid_request` or `invalid_config`. */
export function readThresholds(thresholds: unknown): BusyThresholds {
  checkFields(thresholds, thresholdFields, "thresholds", "invalid_request");
  return thresholdsOf(parseConfig(thresholds, "camelCase", "thresholds"));
}

const allParts: readonly SnapshotPart[] = ["index", "load", "random"];

/** The parts of a snapshot that are asked for; all unless given. Throws `invalid_request`. */
export function readParts(options: unknown, field: "include" | "parts"): readonly SnapshotPart[] {
  checkFields(options, new Map([[field, "list"]]), "options", "invalid_request");
  const parts = (options as Record<string, readonly SnapshotPart[] | undefined>)[field] ?? allParts;
  for (const part of parts) {
    if (!allParts.includes(part)) {
      const message = `${field} must list parts of ${allParts.join(", ")}, not ${describe(part)}`;
      throw new WarmrouteError("invalid_request", message, { path: field });
    }
  }
  if (new Set(parts).size < parts.length) {
    throw new WarmrouteError("invalid_request", `${field} lists a part twice`, { path: field });
  }
  return parts;
}

/** Checks the shape of a router's options, which are at `prefix`. Throws `invalid_config` naming the field. */
export function checkOptions(options: unknown, what = "options", prefix = ""): void {
  checkFields(options, optionFields, what, "invalid_config", prefix);
  const { blockNames, classifyTimeoutMs = 0, clock, decisionLog, log, plugins, tokenizer } = options as RouterOptions;
  if (decisionLog !== undefined && typeof decisionLog !== "boolean" && !isLogSize(decisionLog)) {
    const path = `${prefix}decisionLog`;
    const message = `${path} must be true, false or a whole number up to ${mostDecisions}, not ${describe(decisionLog)}`;
    throw new WarmrouteError("invalid_config", message, { path });
  }
  if (plugins !== undefined) checkPlugins(plugins, `${prefix}plugins`);
  checkMethods(clock, ["now"], `${prefix}clock`, "invalid_config");
  checkMethods(tokenizer, ["encode"], `${prefix}tokenizer`, "invalid_config");
  checkMethods(log, ["debug", "info", "warn", "error"], `${prefix}log`, "invalid_config");
  if (blockNames !== undefined && blockNames !== "engine" && blockNames !== "sequence") {
    const path = `${prefix}blockNames`;
    throw new WarmrouteError("invalid_config", `${path} must be engine or sequence, not ${describe(blockNames)}`, {
      path,
    });
  }
  if (classifyTimeoutMs > longestTimerMs) {
    const path = `${prefix}classifyTimeoutMs`;
    throw new WarmrouteError("invalid_config", `${path} must be at most ${longestTimerMs}`, { path });
  }
}

const mostDecisions = 1_000_000;
const isLogSize = (value: unknown) =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= mostDecisions;

/** Throws `invalid_config` for what is no bundle. */
export function checkPlugins(plugins: unknown, path = "plugins"): void {
  if (plugins instanceof RouterPlugins) return;
  throw new WarmrouteError("invalid_config", `${path} must be what registry.resolvePlugins() returned`, { path });
}
