import type { ConfigOverride, KvRouterConfig } from "../core/config.js";
import type { U64Input } from "../core/ids.js";
import type {
  Candidate,
  Evidence,
  Excluded,
  Outcome,
  Overlap,
  Reason,
  SessionContext,
  WorkerRank,
  WorkerRankInput,
  WorkerRecord,
  WorkerRole,
} from "../core/types.js";
import type { Kernel } from "../kernel/kernel.js";
import type { KernelProgram } from "../plugins/worker-selection/kernel-policy.js";
import type { WorkerSelectionPolicy } from "../plugins/worker-selection/policy.js";
import type { PoolBooking } from "./bookings/booking.js";
import type { ConstraintInput } from "./eligibility.js";
import type { Predictions } from "./predictions/predictions.js";
import type { PoolRanks } from "./ranks.js";

/** What the parts of a selection core know of their pool. */
export interface Pool {
  readonly kernel: Kernel;
  readonly ranks: PoolRanks;
  readonly config: KvRouterConfig;
  readonly role: WorkerRole;
  readonly policy: WorkerSelectionPolicy;
  /** The policy's program in the kernel; undefined when its components run here. */
  readonly program: KernelProgram | undefined;
  /** What counts as one token of an engine's own figures: 1, or 4 where prompts are counted in bytes. */
  readonly unitsPerToken: number;
  /** Whether the policy looks at caches, so that the pool keeps an index. */
  readonly usesIndex: boolean;
  /** What ranks are believed to hold; undefined where only events say it. */
  readonly predictions: Predictions | undefined;
}

/** A selection request as the core takes it. */
export interface PoolRequest extends ConstraintInput {
  requestId?: string;
  tokens: Uint32Array | readonly number[];
  /** false: they are not the engine's own ids. */
  tokensExact?: boolean;
  loraName?: string;
  cacheSalt?: string;
  expectedOutputTokens?: number;
  pinnedWorker?: WorkerRankInput;
  /** Where the session's state is; without a rank any rank of the worker will do. */
  affinityTarget?: { workerId: U64Input; dpRank?: number };
  /** The affinity never binds: it weighs as a preferred taint of weight 1 does. */
  softAffinity?: boolean;
  sessionContext?: SessionContext;
  /** In seconds; 0 unless given. */
  priorityJump?: number;
  /** Larger first; 0 unless given. */
  strictPriority?: number;
  attributes?: ReadonlyMap<string, string>;
  configOverride?: ConfigOverride;
  /** Slots that are kept for others, but for a pin. */
  keptSlots?: ReadonlySet<number>;
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
