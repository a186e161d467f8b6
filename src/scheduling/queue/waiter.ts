import type { Parked } from "./contract.js";
import type { HeapEntry } from "./heap.js";

/** A request that waits. */
export interface Waiter extends HeapEntry {
  readonly parked: Parked;
  /** Its strict priority: larger goes first. */
  readonly tier: number;
  /** Infinity where it has no due time. */
  readonly dueAtMs: number;
  /** Where its class's queue policy puts it: larger goes first. */
  readonly score: number;
  /** The order in which requests were parked. */
  readonly sequence: number;
  readonly sinceMs: number;
  /** Later requests that went to ranks it could use while it was the first of its lane. */
  bypassed: number;
  /** Lets it go, but not to slots that are kept for others. */
  go(kept: ReadonlySet<number> | undefined): void;
  /** Ends its wait with an error. */
  refuse(error: unknown): void;
}

/** Whether `a` goes before `b` (spec: scheduling.md §5.3). */
export function isBefore(a: Waiter, b: Waiter): boolean {
  if (a.tier !== b.tier) return a.tier > b.tier;
  if (a.dueAtMs !== b.dueAtMs) return a.dueAtMs < b.dueAtMs;
  if (a.score !== b.score) return a.score > b.score;
  return a.sequence < b.sequence;
}

/** Where the queue policy of its class puts a request. */
export function scoreOf({ policyClass, priorityJump, ingressAtMs, costTokens }: Parked): number {
  const jump = Math.max(0, priorityJump);
  switch (policyClass.queuePolicy) {
    case "fcfs":
      return jump - ingressAtMs / 1000;
    case "lcfs":
      return jump + ingressAtMs / 1000;
    case "wspt":
      return (1 + jump) / costTokens;
  }
}
