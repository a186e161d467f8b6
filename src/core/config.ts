import { WarmrouteError } from "./errors.js";
import { describe, shortened } from "./ids.js";

/**
 * The router's configuration (spec: scheduling.md §2, plugins.md §4.1). Names are camelCase here and
 * snake_case in documents; `configFields` is the one table of names, defaults and ranges.
 */
export interface KvRouterConfig {
  /** Multiplier on device overlap blocks in the cost. */
  overlapScoreCredit: number;
  /** Reduces the device credit of ranks with more prefill backlog than the least loaded one. */
  overlapScoreCreditDecay: number;
  /** Multiplier on the prefill cost after credits. */
  prefillLoadScale: number;
  /** Cost in blocks of each active request of a rank. */
  decodeActiveRequestWeight: number;
  /** Credit for each block found in the host tier beyond the device tier. */
  hostCacheHitWeight: number;
  /** Credit for each block found on disk or in the external tier beyond the host tier. */
  diskCacheHitWeight: number;
  /** Credit for each block of the shared cache beyond the device prefix. */
  sharedCacheMultiplier: number;
  /** Softmax temperature over normalised costs; 0 takes the minimum. */
  routerTemperature: number;
  /** Learn what ranks hold from engine events; if not, each event is refused (`events_off`) and counted. */
  useKvEvents: boolean;
  /** Charge prompts to the rank that runs them. */
  routerTrackActiveBlocks: boolean;
  /** Charge generated blocks, as `tokens(n)` reports them. */
  routerTrackOutputBlocks: boolean;
  /** Share equal prefixes of active prompts; false charges every block to its own request. */
  routerAssumeKvReuse: boolean;
  /** Charge prompt tokens until prefill completes. */
  routerTrackPrefillTokens: boolean;
  /** Without events: seconds that a routed prompt counts as cached, where the worker's `totalKvBlocks` is unknown. */
  routerTtlSecs: number;
  /** Beside events, and only there: seconds that a routed prompt counts as cached, whatever events say; off unless given. */
  routerPredictedTtlSecs?: number;
  /** Ends a booking that shows no progress for so many seconds, counted as expired; 0 never does. */
  activeRequestExpirySecs: number;
  /** Requests wait while each rank has more active prefill tokens than this share of its `maxNumBatchedTokens`; for models without a queue profile, off unless given. */
  routerQueueThreshold?: number;
  /** The order of waiting requests, for models without a queue profile. */
  routerQueuePolicy: QueueOrder;
  /** A waiting request of a lower strict priority takes turns with higher ones after so many seconds; 0 never. */
  strictPriorityMaxWaitSecs: number;
  /** A rank is overloaded with more active blocks than this share of its `totalKvBlocks`; off unless given. */
  activeDecodeBlocksThreshold?: number;
  /** A rank is overloaded with more active prefill tokens than this; off unless given. */
  activePrefillTokensThreshold?: number;
  /** A rank is overloaded with more active prefill tokens than this share of its `maxNumBatchedTokens`; off unless given. */
  activePrefillTokensThresholdFrac?: number;
  /** Requests of a session go where the session last went, until it is idle for so many seconds; off unless given. */
  sessionAffinityTtlSecs?: number;
  /** A session's rank is advice to the policy; if not, it decides wherever it may take the request. */
  sessionAffinitySoft: boolean;
}

const queueOrders = ["fcfs", "wspt", "lcfs"] as const;
/** How waiting requests are ordered: by arrival, shortest uncached prompt first, or latest first. */
export type QueueOrder = (typeof queueOrders)[number];

interface NumberField {
  kind: "number";
  /** undefined: off. */
  default: number | undefined;
  min: number;
  max: number;
  overridable: boolean;
  /** The name in a per-request override, where it is not the configuration's. */
  override?: string;
}
interface BooleanField {
  kind: "boolean";
  default: boolean;
  overridable: boolean;
  override?: string;
}
interface ChoiceField {
  kind: "choice";
  default: string;
  choices: readonly string[];
  overridable: false;
  override?: undefined;
}
export type ConfigField = NumberField | BooleanField | ChoiceField;

const MAX = Number.MAX_VALUE;
const num = (def: number, max: number, overridable = false): NumberField => ({
  kind: "number",
  default: def,
  min: 0,
  max,
  overridable,
});
const optional = (min: number, max: number): NumberField => ({
  kind: "number",
  default: undefined,
  min,
  max,
  overridable: false,
});
const bool = (def: boolean, override?: string): BooleanField =>
  override === undefined
    ? { kind: "boolean", default: def, overridable: false }
    : { kind: "boolean", default: def, overridable: true, override };

/** Every field with its default, its range, and whether one request may override it. */
export const configFields: { readonly [K in keyof KvRouterConfig]-?: ConfigField } = {
  overlapScoreCredit: num(1, MAX, true),
  overlapScoreCreditDecay: num(0, MAX),
  prefillLoadScale: num(1, MAX, true),
  decodeActiveRequestWeight: num(0, MAX),
  hostCacheHitWeight: num(0.75, 1),
  diskCacheHitWeight: num(0.25, 1),
  sharedCacheMultiplier: num(0, 1, true),
  routerTemperature: num(0, MAX, true),
  useKvEvents: bool(true),
  routerTrackActiveBlocks: bool(true),
  routerTrackOutputBlocks: bool(false),
  routerAssumeKvReuse: bool(true, "assumeKvReuse"),
  routerTrackPrefillTokens: bool(true, "trackPrefillTokens"),
  routerTtlSecs: num(120, MAX),
  routerPredictedTtlSecs: optional(0, MAX),
  activeRequestExpirySecs: num(600, MAX),
  routerQueueThreshold: optional(0, MAX),
  routerQueuePolicy: { kind: "choice", default: "fcfs", choices: queueOrders, overridable: false },
  strictPriorityMaxWaitSecs: num(30, MAX),
  activeDecodeBlocksThreshold: optional(0, 1),
  activePrefillTokensThreshold: optional(0, MAX),
  activePrefillTokensThresholdFrac: optional(0, MAX),
  sessionAffinityTtlSecs: optional(1, 31_536_000),
  sessionAffinitySoft: bool(false),
};

const fields = Object.entries(configFields) as [keyof KvRouterConfig, ConfigField][];

/** `overlapScoreCredit` → `overlap_score_credit`. */
export const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);

/** The configuration when nothing is given. */
export const defaultConfig: Readonly<KvRouterConfig> = Object.freeze(
  Object.fromEntries(
    fields.flatMap(([name, field]) => (field.default === undefined ? [] : [[name, field.default]])),
  ) as unknown as KvRouterConfig,
);

/** What one request may change for itself (CONTRACT: `configOverride`). */
export interface ConfigOverride {
  overlapScoreCredit?: number;
  prefillLoadScale?: number;
  routerTemperature?: number;
  sharedCacheMultiplier?: number;
  trackPrefillTokens?: boolean;
  assumeKvReuse?: boolean;
  /** Deprecated single weight: sets `prefillLoadScale`, and 0 also sets `overlapScoreCredit` to 0. */
  overlapScoreWeight?: number;
}

type Naming = "camelCase" | "snake_case";
const overlapWeight: NumberField = num(1, MAX, true);

function read(field: ConfigField, value: unknown, path: string): number | boolean | string {
  if (field.kind === "choice") {
    if (field.choices.includes(value as string)) return value as string;
    const message = `${path} must be one of ${field.choices.join(", ")}, not ${describe(value)}`;
    throw new WarmrouteError("invalid_config", message, { path });
  }
  if (field.kind === "boolean") {
    if (typeof value === "boolean") return value;
    throw new WarmrouteError("invalid_config", `${path} must be true or false, not ${describe(value)}`, { path });
  }
  if (typeof value === "number" && value >= field.min && value <= field.max) return value;
  const range = field.max === MAX ? `a finite number of at least ${field.min}` : `from ${field.min} to ${field.max}`;
  throw new WarmrouteError("invalid_config", `${path} must be ${range}, not ${describe(value)}`, { path });
}

function readAll(
  known: ReadonlyMap<string, [string, ConfigField]>,
  input: unknown,
  path: string,
): Record<string, number | boolean | string> {
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    throw new WarmrouteError("invalid_config", `${path} must be an object, not ${describe(input)}`, { path });
  }
  const out: Record<string, number | boolean | string> = {};
  for (const [key, value] of Object.entries(input)) {
    if (value === undefined) continue;
    const entry = known.get(key);
    if (!entry) {
      throw new WarmrouteError("invalid_config", `${path} has an unknown field: ${shortened(key)}`, {
        path: `${path}.${key}`,
      });
    }
    out[entry[0]] = read(entry[1], value, `${path}.${key}`);
  }
  if (out.overlapScoreWeight !== undefined) {
    out.prefillLoadScale = out.overlapScoreWeight;
    if (out.overlapScoreWeight === 0) out.overlapScoreCredit = 0;
    delete out.overlapScoreWeight;
  }
  return out;
}

const named = (naming: Naming, name: string) => (naming === "camelCase" ? name : snakeCase(name));
function knownNames(naming: Naming, override: boolean): Map<string, [string, ConfigField]> {
  const known = new Map<string, [string, ConfigField]>();
  for (const [name, field] of fields) {
    if (!override) known.set(named(naming, name), [name, field]);
    else if (field.overridable) known.set(named(naming, field.override ?? name), [name, field]);
  }
  known.set(named(naming, "overlapScoreWeight"), ["overlapScoreWeight", overlapWeight]);
  return known;
}
const known = {
  camelCase: { config: knownNames("camelCase", false), override: knownNames("camelCase", true) },
  snake_case: { config: knownNames("snake_case", false), override: knownNames("snake_case", true) },
};

/** Reads a configuration over the defaults; unknown fields and values out of range are `invalid_config`. */
export function parseConfig(input: unknown, naming: Naming = "camelCase", path = "config"): KvRouterConfig {
  if (input === undefined) return defaultConfig;
  const config = { ...defaultConfig, ...readAll(known[naming].config, input, path) } as KvRouterConfig;
  if (config.routerPredictedTtlSecs !== undefined && !config.useKvEvents) {
    const at = (name: string) => `${path}.${named(naming, name)}`;
    const message = `${at("routerPredictedTtlSecs")} is for a router with events: without them ${at("routerTtlSecs")} says how long a routed prompt counts as cached`;
    throw new WarmrouteError("invalid_config", message, { path: at("routerPredictedTtlSecs") });
  }
  return config;
}

/** The configuration of one request: the router's, with the request's override. */
export function applyOverride(
  config: KvRouterConfig,
  override: unknown,
  naming: Naming = "camelCase",
  path = "configOverride",
): KvRouterConfig {
  return { ...config, ...readAll(known[naming].override, override, path) } as KvRouterConfig;
}
