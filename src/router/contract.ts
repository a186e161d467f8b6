// What a router offers, as a library user calls it (the names and shapes are the public contract).

import type { Clock } from "../core/clock.js";
import type { ConfigOverride, KvRouterConfig } from "../core/config.js";
import type { U64Input } from "../core/ids.js";
import type {
  Candidate,
  Evidence,
  Excluded,
  Outcome,
  Overlap,
  Reason,
  WorkerInput,
  WorkerRank,
  WorkerRankInput,
  WorkerRecord,
} from "../core/types.js";

export interface RouterOptions {
  /** Name of the model; part of the pool's seed. */
  model?: string;
  /** Tokens a block; 64 unless given. */
  blockSize?: number;
  /** Seed of all random choices; from the runtime's secure generator unless given. */
  seed?: U64Input;
  config?: Partial<KvRouterConfig>;
  workers?: readonly WorkerInput[];
  /** `engine`: ranks name blocks in their own way. `sequence`: names are sequence hashes; saves 8 bytes a block. */
  blockNames?: "engine" | "sequence";
  /** Bytes of linear memory for one pool; 1 GiB unless given. */
  memoryBudgetBytes?: number;
  /** Ranks a pool may have; 16384 unless given, which is also the most. */
  maxRanks?: number;
  clock?: Clock;
}

export interface RoutingConstraints {
  requiredTaints?: readonly string[];
  /** Weight of each taint: positive attracts, negative repels. */
  preferredTaints?: Readonly<Record<string, number>>;
}

export interface SelectRequest {
  requestId?: string;
  tokens: Uint32Array | readonly number[];
  routingGroup?: string;
  loraName?: string;
  cacheSalt?: string;
  expectedOutputTokens?: number;
  pinnedWorker?: WorkerRankInput;
  allowedWorkerIds?: readonly U64Input[];
  routingConstraints?: RoutingConstraints;
  configOverride?: ConfigOverride;
  explain?: boolean;
}

/** What a probe answers: the shape of `warmroute explain`, in camelCase. It books nothing. */
export interface ProbeResult {
  outcome: Outcome;
  selected: WorkerRank | null;
  candidates: Candidate[];
  excluded: Excluded[];
}

/** The load charged to a rank for one request, from selection until free. Verbs of an ended booking do nothing. */
export interface Booking extends Disposable {
  readonly requestId: string;
  readonly worker: WorkerRank;
  /** The request was sent to the worker. */
  sent(): void;
  /** The first token arrived: prefill is complete. */
  firstToken(): void;
  /** `n` more tokens were generated. */
  tokens(n: number): void;
  complete(): void;
  abort(error?: unknown): void;
  prefillComplete(): void;
  /** Charges one output block; `decayFraction` in 0…1 re-weighs the blocks only this request holds. */
  outputBlock(decayFraction?: number): void;
  free(): void;
}

export interface Selection {
  readonly requestId: string;
  readonly worker: WorkerRank;
  /** The worker as it was added: its url, engine, ranks and labels. */
  readonly record: WorkerRecord;
  readonly url?: string;
  readonly overlap: Overlap;
  /** Prompt tokens that the rank's tiers save, weighted by tier. */
  readonly cachedTokens: number;
  /** Prompt tokens charged to the rank until prefill completes. */
  readonly effectivePrefillTokens: number;
  readonly evidence: Evidence;
  readonly reason: Reason;
  readonly policy: string;
  readonly policyClass: string;
  readonly queueWaitMs: number;
  /** Which of the tied ranks was taken, in row order; absent without a tie. */
  readonly tieDraw?: number;
  /** Every eligible rank with its terms; only with `explain: true`. */
  readonly candidates?: Candidate[];
  readonly booking: Booking;
  /** Follows the response of a dispatch: first byte, end, error or cancel, and frees the booking exactly once. */
  track(response: Response | Promise<Response>): Promise<Response>;
}

export interface LoadRow extends WorkerRank {
  activePrefillTokens: number;
  activeDecodeBlocks: number;
  activeRequests: number;
}

export interface OverlapRow extends WorkerRank {
  deviceBlocks: number;
  hostBlocks: number;
  diskBlocks: number;
}

export interface ReserveRequest {
  requestId: string;
  worker: WorkerRankInput;
  sequenceHashes: BigUint64Array | readonly U64Input[];
  islTokens: number;
  effectivePrefillTokens?: number;
}

export type SnapshotPart = "index" | "load" | "random";

export interface RouterStats {
  index: { blocks: number; bytes: number; budgetBytes: number; orphans: number; refused: number; duplicates: number };
  bookings: { live: number; forgotten: number; expired: number };
  queue: { pending: number; pendingIslTokens: number; byClass: Record<string, number> };
  decisions: number;
}

/** The library's router. `probe` … `restore` are synchronous; `select` may one day wait in a queue. */
export interface Router extends AsyncDisposable {
  readonly model: string;
  readonly blockSize: number;
  select(request: SelectRequest, options?: { signal?: AbortSignal }): Promise<Selection>;
  probe(request: Omit<SelectRequest, "requestId">): ProbeResult;
  overlap(
    prompt:
      | { tokens: Uint32Array | readonly number[]; loraName?: string; cacheSalt?: string }
      | { blockHashes: BigUint64Array | readonly U64Input[] },
  ): OverlapRow[];
  reserve(request: ReserveRequest): Booking;
  booking(requestId: string): Booking | undefined;
  applyEvent(event: unknown): { applied: boolean; reason?: string };
  addWorker(worker: WorkerInput): WorkerRecord;
  removeWorker(workerId: U64Input): boolean;
  workers(): WorkerRecord[];
  loads(): LoadRow[];
  stats(): RouterStats;
  snapshot(options?: { include?: readonly SnapshotPart[] }): Uint8Array;
  restore(bytes: Uint8Array, options?: { parts?: readonly SnapshotPart[] }): void;
  close(options?: { graceMs?: number }): Promise<void>;
}
