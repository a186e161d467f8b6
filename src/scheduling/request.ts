// Writing one request for the kernel: the prompt, the request row, and the columns of its constraints.
import { applyOverride, type KvRouterConfig } from "../core/config.js";
import { WarmrouteError } from "../core/errors.js";
import { parseU32, workerIdString } from "../core/ids.js";
import { Column } from "../kernel/abi.js";
import { policyNumber } from "./built-in.js";
import { type Constraints, exclusionOf, pinOutcome, preferenceOf } from "./eligibility.js";
import { type Pool, type PoolRequest, usesIndex } from "./pool.js";

/** Bits of the request row's flags (assembly/select/cost.ts and decide.ts). */
export const RequestFlag = {
  track: 1,
  decodeRole: 2,
  lower: 4,
  shared: 8,
  taints: 16,
  mask: 32,
  book: 1 << 8,
  privateBlocks: 1 << 9,
  noIndex: 1 << 10,
  noPromptBlocks: 1 << 11,
  probe: 1 << 12,
  keep: 1 << 13,
} as const;

/** Doubles of the request row (assembly/select/decide.ts). */
export const RequestDouble = { promptTokens: 4, params: 8, twoTier: 16 } as const;

/**
 * Writes a request. Everything that can be refused is refused here, before any change: `invalid_tokens`,
 * `invalid_request`, `invalid_config`, `memory_budget`. Answers the configuration with the request's override.
 */
export function writeRequest(
  pool: Pool,
  request: PoolRequest,
  constraints: Constraints | undefined,
  extraFlags: number,
): KvRouterConfig {
  const { kernel } = pool;
  const config =
    request.configOverride === undefined ? pool.config : applyOverride(pool.config, request.configOverride);
  const expected = request.expectedOutputTokens;
  if (expected !== undefined && !(expected >= 0 && Number.isFinite(expected))) {
    throw new WarmrouteError("invalid_request", "expectedOutputTokens must be a finite number of at least 0", {
      path: "expectedOutputTokens",
    });
  }
  const pinned = request.pinnedWorker === undefined ? -1 : pinnedSlot(pool, request.pinnedWorker, constraints);
  const n = kernel.writeTokens(request.tokens);
  const seed = kernel.localSeed(request.loraName, request.cacheSalt);
  let flags = extraFlags;
  if (config.routerTrackPrefillTokens) flags |= RequestFlag.track;
  if (pool.role === "decode") flags |= RequestFlag.decodeRole;
  if (!config.routerAssumeKvReuse) flags |= RequestFlag.privateBlocks;
  if (!config.routerTrackActiveBlocks) flags |= RequestFlag.noPromptBlocks;
  if (!usesIndex(pool.config)) flags |= RequestFlag.noIndex;
  if (constraints) flags |= writeConstraints(pool, constraints);
  kernel.setRequest(n, flags, pinned, policyNumber[pool.policy], seed);
  writeParameters(pool, config);
  return config;
}

/**
 * The slot of a pinned rank. The kernel refuses a slot beyond the last, so a pin that is not allowed
 * becomes an outcome like any other.
 */
function pinnedSlot(
  pool: Pool,
  pin: { workerId: unknown; dpRank?: unknown },
  constraints: Constraints | undefined,
): number {
  const id = workerIdString(pin.workerId, "pinnedWorker.workerId", "invalid_request");
  const rank = pool.ranks.get(id, parseU32(pin.dpRank ?? 0, "pinnedWorker.dpRank"));
  return pinOutcome(id, rank, constraints) === "selected" ? rank!.slot : pool.kernel.maxRanks;
}

function writeParameters({ kernel, twoTier }: Pool, config: KvRouterConfig): void {
  const row = kernel.requestDoubles;
  const p = RequestDouble.params;
  row[p] = config.overlapScoreCredit;
  row[p + 1] = config.overlapScoreCreditDecay;
  row[p + 2] = config.prefillLoadScale;
  row[p + 3] = config.decodeActiveRequestWeight;
  row[p + 4] = config.hostCacheHitWeight;
  row[p + 5] = config.diskCacheHitWeight;
  row[p + 6] = config.sharedCacheMultiplier;
  row[p + 7] = config.routerTemperature;
  const t = RequestDouble.twoTier;
  row[t] = twoTier.cacheThreshold;
  row[t + 1] = twoTier.balanceAbsThreshold;
  row[t + 2] = twoTier.balanceRelThreshold;
}

/** Fills the columns mask and taint; answers their flags. */
function writeConstraints({ kernel, ranks }: Pool, constraints: Constraints): number {
  const mask = kernel.bytes(kernel.exports.column(Column.mask), kernel.exports.rankCount());
  const taint = constraints.preferred.length > 0 ? kernel.column(Column.taint) : undefined;
  let row = 0;
  for (const rank of ranks) {
    const exclusion = exclusionOf(rank, constraints);
    mask[row] = exclusion === undefined || exclusion === "overloaded" ? 0 : 1;
    if (taint) taint[row] = preferenceOf(rank, constraints);
    row++;
  }
  return RequestFlag.mask | (taint ? RequestFlag.taints : 0);
}
