// What a worker-selection policy is made of: filters, then scorers, then one picker.
import type { SessionContext, WorkerRank } from "../../core/types.js";

/** Groups of columns that a component may ask for; combine them with `|`. */
export const WorkerInputs = {
  NONE: 0,
  CACHE: 1,
  LOAD: 2,
  PREFERRED_TAINT: 4,
  /** @deprecated The former name of `PREFERRED_TAINT`; removed in 1.7. */
  ROUTING: 4,
  OCCUPANCY: 32,
  LATENCY: 64,
  NETWORK: 128,
} as const;
export type WorkerInputs = number;

/** The request of one selection, and the pool's generator. Valid during the call only. */
export interface SelectionContext {
  readonly promptTokens: number;
  /** Blocks of the prompt, the last one possibly partial. */
  readonly requestBlocks: number;
  /** Tokens a block. */
  readonly blockSize: number;
  /** Whether this request counts towards prefill load. */
  readonly tracksPrefillTokens: boolean;
  readonly sessionContext?: SessionContext;
  /** Where the session's state is; advice, not a bound. Without a rank any rank of the worker will do. */
  readonly affinityTarget?: { readonly workerId: string; readonly dpRank?: number };
  /** The only rank allowed: a caller's pin, or an exclusive affinity. */
  readonly pinnedWorker?: WorkerRank;
  readonly expectedOutputTokens?: number;
  readonly priorityJump: number;
  readonly strictPriority: number;
  readonly routerTemperatureOverride?: number;
  readonly attributes: ReadonlyMap<string, string>;
  /** The pool's seeded generator, which the built-in policies use too: a number in [0, 1). */
  random(): number;
  /** A whole number in [0, n), from one draw. */
  randomBelow(n: number): number;
}

/** KV cache of each row, in blocks unless said otherwise. */
export interface CacheColumns {
  readonly deviceOverlapBlocks: Float64Array;
  readonly hostOverlapBlocks: Float64Array;
  readonly diskOverlapBlocks: Float64Array;
  /** Blocks of the shared cache at or after the device prefix. */
  readonly sharedBeyondDeviceBlocks: Float64Array;
  /** The host's own estimate, tiers weighted; not clamped to the prompt. */
  readonly estimatedBlocks: Float64Array;
  /** The same in tokens. */
  readonly estimatedTokens: Float64Array;
  /** Whether any rank of the pool holds any block of this prompt, in any tier. */
  readonly hasTierMatches: boolean;
}

export interface LoadColumns {
  /** 1 where a load is known; 0 tells an unknown load from an idle rank. */
  readonly isAvailable: Uint8Array;
  readonly activePrefillTokens: Float64Array;
  /** Active decode blocks and those that this request would add. */
  readonly decodeCostBlocks: Float64Array;
  readonly activeRequests: Float64Array;
}

/** NaN where nothing is known. */
export interface LatencyColumns {
  readonly ttftMsMean: Float64Array;
  readonly itlMsMean: Float64Array;
  /** Share of requests that failed, 0…1. */
  readonly errorRate: Float64Array;
  readonly samples: Float64Array;
}

export interface NetworkColumns {
  /** NaN where nothing is known. */
  readonly rttMs: Float64Array;
  readonly sameRegion: Uint8Array;
}

/**
 * The candidates, one a row; all components see the same rows in the same order. Columns are views over the
 * kernel's memory, valid during the call only: keep values, never views. A group that the component did not ask
 * for is undefined.
 */
export interface CandidateView {
  readonly length: number;
  /** A small number that stays with a rank as long as it lives; freed slots are used again (`onSlotReleased`). */
  readonly slot: Uint32Array;
  readonly dpRank: Uint32Array;
  workerId(row: number): string;
  label(row: number, key: string): string | undefined;
  readonly cache?: CacheColumns;
  readonly load?: LoadColumns;
  /** e^−tanh(Σ weights), in e⁻¹…e; undefined also when the request has no preferred taints or is pinned. */
  readonly preferredTaintMultiplier?: Float64Array;
  readonly latency?: LatencyColumns;
  readonly network?: NetworkColumns;
}

/** The candidates with the sum of what the scorers gave; lower is better. */
export interface ScoredView extends CandidateView {
  readonly costs: Float64Array;
}

export interface WorkerFilter {
  readonly requiredInputs?: WorkerInputs;
  /** Whether a row stays. */
  keep(ctx: SelectionContext, rows: CandidateView, row: number): boolean;
}

export interface WorkerScorer {
  readonly requiredInputs?: WorkerInputs;
  /** Writes a finite cost for every row; slots arrive as NaN, so that a forgotten one is found. */
  score(ctx: SelectionContext, rows: CandidateView, costs: Float64Array): void;
}

export interface WorkerPicker {
  readonly requiredInputs?: WorkerInputs;
  /** The chosen row. */
  pick(ctx: SelectionContext, rows: ScoredView): number;
}
