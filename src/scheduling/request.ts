// Writing one request for the kernel: the prompt, the request row, and the columns of its constraints.
import { applyOverride, type KvRouterConfig } from "../core/config.js";
import { WarmrouteError } from "../core/errors.js";
import { Column, RequestDouble } from "../kernel/abi.js";
import { type AffinityTarget, type Binding, isMeant, isWithin } from "./binding.js";
import { type Constraints, exclusionOf, preferenceOf } from "./eligibility.js";
import type { Pool, PoolRequest } from "./pool.js";

/** Bits of the request row's flags (assembly/select/cost.ts and request.ts). */
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
  predict: 1 << 14,
} as const;

/**
 * Writes a request. Everything that can be refused is refused here, before any change: `invalid_tokens`,
 * `invalid_request`, `invalid_config`, `memory_budget`. Answers the configuration with the request's override.
 * A rank that is `preferred` is so as much as by a taint of weight 1.
 */
export function writeRequest(
  pool: Pool,
  request: PoolRequest,
  constraints: Constraints | undefined,
  binding: Binding | undefined,
  extraFlags: number,
  preferred?: AffinityTarget,
): KvRouterConfig {
  const { kernel, program } = pool;
  const config =
    request.configOverride === undefined ? pool.config : applyOverride(pool.config, request.configOverride);
  const expected = request.expectedOutputTokens;
  if (expected !== undefined && !(Number.isFinite(expected) && expected >= 0)) {
    throw new WarmrouteError("invalid_request", "expectedOutputTokens must be a finite number of at least 0", {
      path: "expectedOutputTokens",
    });
  }
  const n = kernel.writeTokens(request.tokens);
  const seed = kernel.localSeed(request.loraName, request.cacheSalt);
  let flags = extraFlags;
  if (config.routerTrackPrefillTokens) flags |= RequestFlag.track;
  if (pool.role === "decode") flags |= RequestFlag.decodeRole;
  if (!config.routerAssumeKvReuse) flags |= RequestFlag.privateBlocks;
  if (!config.routerTrackActiveBlocks) flags |= RequestFlag.noPromptBlocks;
  if (!pool.usesIndex) flags |= RequestFlag.noIndex;
  const { keptSlots } = request;
  if (constraints || preferred || keptSlots || (binding && binding.slot === undefined)) {
    flags |= writeConstraints(pool, constraints, binding, preferred, keptSlots);
  }
  kernel.setRequest(n, flags, binding?.slot ?? -1, program?.number ?? 0, seed);
  const row = kernel.requestDoubles;
  row[RequestDouble.tierWeights] = pool.config.hostCacheHitWeight;
  row[RequestDouble.tierWeights + 1] = pool.config.diskCacheHitWeight;
  program?.writeParameters(row, config);
  return config;
}

/** Fills the columns mask and taint; answers their flags. */
function writeConstraints(
  { kernel, ranks }: Pool,
  constraints: Constraints | undefined,
  binding: Binding | undefined,
  preferred: AffinityTarget | undefined,
  kept: ReadonlySet<number> | undefined,
): number {
  const mask = kernel.bytes(kernel.exports.column(Column.mask), kernel.exports.rankCount());
  const hasTaints = preferred !== undefined || (constraints !== undefined && constraints.preferred.length > 0);
  const taint = hasTaints ? kernel.column(Column.taint) : undefined;
  let row = 0;
  for (const rank of ranks) {
    const exclusion = exclusionOf(rank, constraints);
    const mayGo = isWithin(rank, binding) && (exclusion === undefined || exclusion === "overloaded");
    mask[row] = mayGo && !kept?.has(rank.slot) ? 0 : 1;
    if (taint) {
      taint[row] =
        (constraints ? preferenceOf(rank, constraints) : 0) + (preferred && isMeant(preferred, rank) ? 1 : 0);
    }
    row++;
  }
  return RequestFlag.mask | (taint ? RequestFlag.taints : 0);
}
