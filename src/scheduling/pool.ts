import type { ConfigOverride, KvRouterConfig } from "../core/config.js";
import type {
  Candidate,
  Evidence,
  Excluded,
  Outcome,
  Overlap,
  Reason,
  WorkerRank,
  WorkerRankInput,
  WorkerRecord,
  WorkerRole,
} from "../core/types.js";
import type { Kernel } from "../kernel/kernel.js";
import type { PoolBooking } from "./booking.js";
import type { BuiltInPolicy, TwoTierParameters } from "./built-in.js";
import type { ConstraintInput } from "./eligibility.js";
import type { PoolRanks } from "./ranks.js";

/** What the parts of a selection core know of their pool. */
export interface Pool {
  readonly kernel: Kernel;
  readonly ranks: PoolRanks;
  readonly config: KvRouterConfig;
  readonly role: WorkerRole;
  readonly policy: BuiltInPolicy;
  readonly twoTier: TwoTierParameters;
}

/** A selection request as the core takes it. */
export interface PoolRequest extends ConstraintInput {
  requestId?: string;
  tokens: Uint32Array | readonly number[];
  loraName?: string;
  cacheSalt?: string;
  expectedOutputTokens?: number;
  pinnedWorker?: WorkerRankInput;
  configOverride?: ConfigOverride;
  explain?: boolean;
}

/** A decision with its booking. */
export interface PoolSelection {
  requestId: string;
  worker: WorkerRank;
  record: WorkerRecord;
  overlap: Overlap;
  cachedTokens: number;
  effectivePrefillTokens: number;
  evidence: Evidence;
  reason: Reason;
  tieDraw: number | undefined;
  candidates: Candidate[] | undefined;
  booking: PoolBooking;
}

/** A decision as a value. */
export interface Explanation {
  outcome: Outcome;
  selected: WorkerRank | null;
  candidates: Candidate[];
  excluded: Excluded[];
}

/** Whether any credit can be given, so that an index is worth keeping. */
export function usesIndex(config: KvRouterConfig): boolean {
  return (
    config.overlapScoreCredit > 0 ||
    config.hostCacheHitWeight > 0 ||
    config.diskCacheHitWeight > 0 ||
    config.sharedCacheMultiplier > 0
  );
}
