// Where requests wait until a rank has room for them (spec: scheduling.md §5, plugins.md §2.5).
import type { PolicyClass } from "../../plugins/policy/contract.js";

/** The ranks that a request may go to. Requests with equal keys may go to the same ones, and share a lane. */
export interface LaneKey {
  /** "" for a request that is free to go anywhere. */
  readonly key: string;
  /**
   * Slots of the ranks that may take such a request now, in row order; empty when none may. Asked again whenever
   * `QueuePool.topology` has changed.
   */
  slots(): readonly number[];
}

/** What is known of a request that waits; taken once, when it is parked, and never computed anew. */
export interface Parked {
  readonly policyClass: PolicyClass;
  readonly lane: LaneKey;
  /** A tier: larger goes first. */
  readonly strictPriority: number;
  /** In seconds; below 0 counts as 0. */
  readonly priorityJump: number;
  /** When it came in, and when it is due, on the router's clock. */
  readonly ingressAtMs: number;
  readonly dueAtMs: number | undefined;
  /** Prompt tokens, those that its best rank has cached (at most all), and what it costs in the round robin (at least 1). */
  readonly rawTokens: number;
  readonly cachedTokens: number;
  readonly costTokens: number;
}

/** What a queue needs to know of its pool. */
export interface QueuePool {
  /** Rises whenever ranks come, go, change, or may be chosen or not. */
  readonly topology: number;
  /** Workers, not ranks. */
  readonly workers: number;
  /** Active prefill tokens of a rank now; `load` is brought up to date before it is asked. */
  activePrefillTokens(slot: number): number;
  /** Token budget of one engine pass, in the pool's tokens; 10,000,000 where it is unknown. */
  maxNumBatchedTokens(slot: number): number;
  /** Brings what depends on time up to date: modelled prefill, leases. Called once before loads are read. */
  refresh(): void;
}

export interface QueueStats {
  pending: number;
  pendingIslTokens: number;
  /** Waiting requests of each class that has any. */
  byClass: Record<string, number>;
  /** Requests that a limit turned away. */
  rejected: number;
  /** Requests that were due while they waited. */
  overdue: number;
  /** Requests whose callers gave up while they waited. */
  cancelled: number;
}
