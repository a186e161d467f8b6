import type { U64Input } from "./ids.js";

/** A rank: one data-parallel replica of a worker. The id is a u64 as a decimal string. */
export interface WorkerRank {
  workerId: string;
  dpRank: number;
}

/** A rank as a caller may write it. */
export interface WorkerRankInput {
  workerId: U64Input;
  dpRank?: number;
}

export type WorkerRole = "aggregated" | "prefill" | "decode" | "encode";
export const workerRoles = ["aggregated", "prefill", "decode", "encode"] as const satisfies readonly WorkerRole[];
/** The ranks of one model and routing group; each role of it is one pool. */
export interface RoutingPartition {
  model: string;
  routingGroup: string;
}

/** What a request says of the session that it belongs to. */
export interface SessionContext {
  sessionId: string;
  parentSessionId?: string;
  /** true: the session's last request; false: more will come; absent: unsaid. */
  sessionFinal?: boolean;
  inputTrigger?: "user_message" | "tool_result" | "other";
}

export type EngineKind = "auto" | "vllm" | "sglang" | "openai";

/** A worker as a caller describes it; only `workerId` is required. */
export interface WorkerInput {
  workerId: U64Input;
  url?: string;
  role?: WorkerRole;
  routingGroup?: string;
  engine?: EngineKind;
  /** First data-parallel rank; ranks are dpStart … dpStart + dpSize − 1. */
  dpStart?: number;
  dpSize?: number;
  /** KV blocks of each rank. */
  totalKvBlocks?: number;
  /** Token budget of one engine pass. */
  maxNumBatchedTokens?: number;
  events?: string;
  replay?: string;
  labels?: Record<string, string>;
  taints?: readonly string[];
  /** LoRA adapters that it can serve; any unless given. */
  loras?: readonly string[];
  /** Which life of the process this is; a warm start trusts an index only for the same one. */
  incarnation?: string;
}

/** A worker with its defaults filled in. */
export interface WorkerRecord {
  workerId: string;
  url?: string;
  role: WorkerRole;
  routingGroup: string;
  engine: EngineKind;
  dpStart: number;
  dpSize: number;
  totalKvBlocks?: number;
  maxNumBatchedTokens?: number;
  events?: string;
  replay?: string;
  labels: Readonly<Record<string, string>>;
  taints: readonly string[];
  loras?: readonly string[];
  incarnation?: string;
}

export type StorageTier = "device" | "host_pinned" | "disk" | "external";

/** One block of a store: the engine's name, and the hash of its tokens. */
export interface StoredBlock {
  block_hash: U64Input;
  tokens_hash: U64Input;
}

/** A KV event as engines and the indexer exchange it (snake_case: it is a wire document). */
export interface RouterEvent {
  worker_id: U64Input;
  storage_tier?: StorageTier;
  event: {
    event_id?: U64Input;
    dp_rank?: number;
    data:
      | { stored: { parent_hash: U64Input | null; blocks: readonly StoredBlock[] } }
      | { removed: { block_hashes: readonly U64Input[] } }
      | "cleared";
  };
}

export type Evidence = "events" | "predicted" | "approximate" | "none" | "confirmed";
export type Reason = "cost" | "sampled" | "tie" | "pinned" | "affinity" | "only_candidate" | "no_signal";
export type Outcome =
  | "selected"
  | "no_endpoints"
  | "all_eligible_workers_overloaded"
  | "all_eligible_workers_filtered"
  | "pinned_worker_not_allowed"
  | "pinned_worker_overloaded";
/** `filtered`: eligible, but a filter of the policy dropped it. `not_available`: the host took it out. */
export type Exclusion = "not_allowed" | "not_available" | "missing_taint" | "overloaded" | "not_pinned" | "filtered";

/** Leading blocks of a prompt that a rank holds; tiers are exclusive (host counts beyond device, disk beyond host). */
export interface Overlap {
  deviceBlocks: number;
  hostBlocks: number;
  diskBlocks: number;
  sharedBlocks: number;
}

/** One eligible rank of a decision, with what its cost is made of: in blocks, or what each scorer of a policy gave. */
export interface Candidate extends WorkerRank {
  /** Absent for policies that do not score. */
  cost?: number;
  /** Absent where a policy's picker chooses, which may do so in any way. */
  probability?: number;
  terms: Record<string, number | string>;
}

export interface Excluded extends WorkerRank {
  reason: Exclusion;
}
