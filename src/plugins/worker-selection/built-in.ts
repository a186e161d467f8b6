// The policies that ship with the router; both run inside the kernel.
import { configFields, type KvRouterConfig, snakeCase } from "../../core/config.js";
import { RequestDouble } from "../../kernel/abi.js";
import { WorkerInputs } from "./components.js";
import type { WorkerSelectionFactory, WorkerSelectionProvider } from "./contract.js";
import { KernelPolicy, type KernelProgram } from "./kernel-policy.js";
import { type NumberRange, numberParameters } from "./number-parameters.js";

// ---- dynamo-default-cost-fn (spec: plugins.md §4.1)

/** The parameters of the default cost, in the order of the request row (assembly/select/cost.ts). */
const costFields = [
  "overlapScoreCredit",
  "overlapScoreCreditDecay",
  "prefillLoadScale",
  "decodeActiveRequestWeight",
  "hostCacheHitWeight",
  "diskCacheHitWeight",
  "sharedCacheMultiplier",
  "routerTemperature",
] as const satisfies readonly (keyof KvRouterConfig)[];
type CostParameters = Partial<Pick<KvRouterConfig, (typeof costFields)[number]>>;

const costTerms = [
  "raw_prefill_blocks",
  "decay",
  "device_credit",
  "host_credit",
  "disk_credit",
  "shared_credit",
  "prefill_cost",
  "decode_blocks",
  "active_request_cost",
  "taint_multiplier",
];

class DefaultCost implements KernelProgram {
  readonly number = 0;
  readonly hasCosts = true;
  readonly requiredInputs: WorkerInputs;
  readonly #own: CostParameters;

  /** `own` parameters hold for every request; the others are the router's, which a request may override. */
  constructor(config: KvRouterConfig, own: CostParameters) {
    this.#own = own;
    const c = { ...config, ...own };
    const credits = [c.overlapScoreCredit, c.hostCacheHitWeight, c.diskCacheHitWeight, c.sharedCacheMultiplier];
    const inputs = WorkerInputs.LOAD | WorkerInputs.PREFERRED_TAINT;
    this.requiredInputs = credits.some((credit) => credit > 0) ? inputs | WorkerInputs.CACHE : inputs;
  }

  temperature(config: KvRouterConfig): number {
    return this.#own.routerTemperature ?? config.routerTemperature;
  }

  writeParameters(row: Float64Array, config: KvRouterConfig): void {
    const own = this.#own;
    const p = RequestDouble.params;
    row[p] = own.overlapScoreCredit ?? config.overlapScoreCredit;
    row[p + 1] = own.overlapScoreCreditDecay ?? config.overlapScoreCreditDecay;
    row[p + 2] = own.prefillLoadScale ?? config.prefillLoadScale;
    row[p + 3] = own.decodeActiveRequestWeight ?? config.decodeActiveRequestWeight;
    row[p + 4] = own.hostCacheHitWeight ?? config.hostCacheHitWeight;
    row[p + 5] = own.diskCacheHitWeight ?? config.diskCacheHitWeight;
    row[p + 6] = own.sharedCacheMultiplier ?? config.sharedCacheMultiplier;
    row[p + 7] = own.routerTemperature ?? config.routerTemperature;
  }

  terms(values: Float64Array): Record<string, number> {
    return Object.fromEntries(costTerms.map((name, i) => [name, values[i]!]));
  }
}

const DEFAULT = "dynamo-default-cost-fn";

const defaultPolicy = (config: KvRouterConfig, own: CostParameters) =>
  new KernelPolicy(DEFAULT, true, new DefaultCost(config, own));

/** The policy of every role that none was chosen for: the router's configuration, with each request's override. */
export const defaultSelection: WorkerSelectionFactory = ({ config }) => defaultPolicy(config, {});

const costRanges = Object.fromEntries(
  costFields.map((name) => [snakeCase(name), configFields[name] as NumberRange]),
) as Record<string, NumberRange>;
const costParameters = numberParameters(costRanges);

/**
 * The default cost with parameters of its own, each optional, in the units and ranges of the router's configuration.
 * One that is given holds for every request, whatever the request's override says; one that is not behaves as in
 * the default policy. So without parameters it decides as the default policy does, also under overrides.
 */
export const defaultCostProvider: WorkerSelectionProvider = (parameters) => {
  const given = parameters.parse(costParameters);
  const own: CostParameters = {};
  for (const name of costFields) {
    const value = given[snakeCase(name)];
    if (value !== undefined) own[name] = value;
  }
  return ({ config }) => defaultPolicy(config, own);
};

// ---- dynamo-two-tier-cost-fn (spec: plugins.md §4.3)

const twoTierRanges = {
  cache_threshold: { min: 0, max: 1 },
  balance_abs_threshold: { min: 0, max: Number.MAX_SAFE_INTEGER, integer: true },
  balance_rel_threshold: { min: 1, max: Number.MAX_VALUE },
} as const;
const twoTierParameters = numberParameters(twoTierRanges);
const branches = ["imbalanced", "cached", "least_loaded"] as const;

class TwoTier implements KernelProgram {
  readonly number = 1;
  readonly hasCosts = false;
  readonly requiredInputs = WorkerInputs.CACHE | WorkerInputs.LOAD;
  readonly #parameters: Record<keyof typeof twoTierRanges, number>;

  constructor(given: Partial<Record<keyof typeof twoTierRanges, number>>) {
    this.#parameters = { cache_threshold: 0.5, balance_abs_threshold: 32, balance_rel_threshold: 1.1, ...given };
  }

  temperature(): number {
    return 0;
  }

  writeParameters(row: Float64Array): void {
    const { cache_threshold, balance_abs_threshold, balance_rel_threshold } = this.#parameters;
    const t = RequestDouble.twoTier;
    row[t] = cache_threshold;
    row[t + 1] = balance_abs_threshold;
    row[t + 2] = balance_rel_threshold;
  }

  terms(values: Float64Array): Record<string, number | string> {
    return { active_requests: values[0]!, device_overlap_blocks: values[1]!, branch: branches[values[2]!]! };
  }
}

const TWO_TIER = "dynamo-two-tier-cost-fn";

/** Load first, then device overlap; `cache_threshold`, `balance_abs_threshold`, `balance_rel_threshold`. */
export const twoTierProvider: WorkerSelectionProvider = (parameters) => {
  const given = parameters.parse(twoTierParameters);
  return () => new KernelPolicy(TWO_TIER, false, new TwoTier(given));
};

// ---- registration

/** The shipped types. */
export const builtInProviders: Readonly<Record<string, WorkerSelectionProvider>> = {
  [DEFAULT]: defaultCostProvider,
  [TWO_TIER]: twoTierProvider,
};

/** Registers the shipped types; a registry does so before any catalog. */
export function registerBuiltIns(registry: {
  registerWorkerSelection(name: string, provider: WorkerSelectionProvider): unknown;
}): void {
  for (const [name, provider] of Object.entries(builtInProviders)) registry.registerWorkerSelection(name, provider);
}
