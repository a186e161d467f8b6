// What a request classifier sees of a request before it is queued, and of its life afterwards.
import type { Logger } from "../../core/log.js";
import type { SessionContext, WorkerRank } from "../../core/types.js";
import type { PluginParameters } from "../parameters.js";

/** One logical request. The setters are all a classifier can change; each returns the request. */
export interface ClassifyRequest {
  readonly requestId?: string;
  /** What the classifier set, else the caller's. */
  readonly policyClass?: string | undefined;
  readonly inputTokens: number;
  /** When the request came in, on the router's monotonic clock (`context.nowMs()`). */
  readonly ingressAtMs: number;
  /** Only what the classifier set. */
  readonly dueAtMs?: number | undefined;
  /** What the classifier set, else the prompt's tokens that no worker has cached, at least 1. */
  readonly schedulingCostTokens: number;
  readonly sessionContext?: SessionContext | undefined;
  readonly pinnedWorker?: WorkerRank | undefined;
  readonly attributes: ReadonlyMap<string, string>;
  /** Live: prompt and generated tokens so far, across retries. */
  readonly progress: { readonly contextTokens: number };

  /** An explicit class or a family of the policy file; anything else is refused when the result is read. */
  setPolicyClass(name: string): this;
  setDueAtMs(monotonicMs: number): this;
  /** A whole number of at least 1. */
  setSchedulingCostTokens(n: number): this;
  /** Advice to the policy: replaces the session's target; ignored for a pinned request. */
  setWorkerSelectionTarget(workerId: string, dpRank?: number): this;
  clearWorkerSelectionTarget(): this;
  /** Throws unless the host allows it. */
  setStrictPriority(n: number): this;
  /** Throws unless the host allows it. */
  setPriorityJump(seconds: number): this;
}

/** The life of a request. The set is open: have a default branch. */
export type ClassifyEvent =
  | { readonly type: "sent" | "responding"; readonly requestId: string; readonly worker: WorkerRank }
  | {
      readonly type: "completed";
      readonly requestId: string;
      readonly worker: WorkerRank;
      readonly contextTokens?: number;
    }
  | { readonly type: "aborted"; readonly requestId: string; readonly worker?: WorkerRank; readonly error?: unknown };

/** What the factory is told of the router that it makes a classifier for. */
export interface RequestClassifierContext {
  /** Tokens a block. */
  readonly blockSize: number;
  /** Milliseconds of the router's monotonic clock. */
  nowMs(): number;
  random(): number;
  readonly log: Logger;
  /** The ranks that are live now, with the capacity that each publishes in blocks; no load, no I/O, any order. */
  workers(): { worker: WorkerRank; totalKvBlocks?: number }[];
}

export interface RequestClassifier {
  /**
   * Called once for each logical request; answers the same request, now or later. The part before the first
   * `await` must be quick: it holds up other classifications. `signal` fires when the caller gives up; a method that
   * declares the request as its only parameter gets none, for making one takes longer than a whole selection.
   */
  classify?(request: ClassifyRequest, signal: AbortSignal): ClassifyRequest | Promise<ClassifyRequest>;
  /** Called with one event at a time, in order; the next waits until this one is done. */
  onEvent?(event: ClassifyEvent): void | Promise<void>;
  close?(): void | Promise<void>;
}

/** Called once for each router. */
export type RequestClassifierFactory = (context: RequestClassifierContext) => RequestClassifier;

/** Called once, with the parameters of the policy file. */
export type RequestClassifierProvider = (parameters: PluginParameters) => RequestClassifierFactory;
