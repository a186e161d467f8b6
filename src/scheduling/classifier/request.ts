import { disown, isPromise } from "../../core/foreign.js";
import type { SessionContext, WorkerRank } from "../../core/types.js";
import type { ClassifyRequest } from "../../plugins/request-classifier/contract.js";
import { frozenSession } from "../sessions/session.js";
import { pluginFailed } from "./faults.js";
import type { RequestLifecycle } from "./lifecycle.js";
import { type ClassifyOverrides, noOverrides } from "./overrides.js";

/** What the router tells of a request that is to be classified. */
export interface ClassifyInput {
  readonly policyClass?: string | undefined;
  readonly inputTokens: number;
  /** When the request came in, on the router's clock. */
  readonly ingressAtMs: number;
  readonly sessionContext?: SessionContext | undefined;
  readonly pinnedWorker?: WorkerRank | undefined;
  readonly attributes: ReadonlyMap<string, string>;
  /** The prompt's tokens that no eligible worker has cached, at least 1. Called at most once, if the plugin asks. */
  schedulingCost(): number;
}

type Recorded = { -readonly [K in keyof ClassifyOverrides]: ClassifyOverrides[K] };

/**
 * A request as its classifier sees it. It holds neither the prompt nor the headers; what the plugin may set is
 * recorded, and judged when the plugin answers. Plugins answer with this very object: a copy is another request.
 */
export class ClassifierRequest implements ClassifyRequest {
  readonly #lifecycle: RequestLifecycle;
  readonly #input: ClassifyInput;
  readonly #allowPriority: boolean;
  #overrides: Recorded | undefined;
  #cost: number | undefined;
  #session: SessionContext | undefined;
  #fault: { readonly error: unknown } | undefined;
  #taken = false;

  constructor(lifecycle: RequestLifecycle, input: ClassifyInput, allowPriority: boolean) {
    this.#lifecycle = lifecycle;
    this.#input = input;
    this.#allowPriority = allowPriority;
  }

  get requestId(): string {
    return this.#lifecycle.requestId;
  }

  get policyClass(): string | undefined {
    return this.#overrides?.policyClass ?? this.#input.policyClass;
  }

  get inputTokens(): number {
    return this.#input.inputTokens;
  }

  get ingressAtMs(): number {
    return this.#input.ingressAtMs;
  }

  get dueAtMs(): number | undefined {
    return this.#overrides?.dueAtMs;
  }

  get schedulingCostTokens(): number {
    const set = this.#overrides?.schedulingCostTokens;
    if (set !== undefined) return set;
    if (this.#fault) throw this.#fault.error;
    try {
      this.#cost ??= this.#input.schedulingCost();
    } catch (error) {
      this.#fault = { error };
      throw error;
    }
    return this.#cost;
  }

  /** What a failure of the plugin comes from: the request itself, where reading its cost was refused; else the plugin. */
  blame(cause: unknown): unknown {
    return this.#fault ? this.#fault.error : pluginFailed(cause);
  }

  get sessionContext(): SessionContext | undefined {
    const { sessionContext } = this.#input;
    this.#session ??= sessionContext && frozenSession(sessionContext);
    return this.#session;
  }

  get pinnedWorker(): WorkerRank | undefined {
    return Object.freeze(this.#input.pinnedWorker);
  }

  get attributes(): ReadonlyMap<string, string> {
    return this.#input.attributes;
  }

  get progress(): { readonly contextTokens: number } {
    return this.#lifecycle.progress;
  }

  setPolicyClass(name: string): this {
    return this.#set("policyClass", name);
  }

  setDueAtMs(monotonicMs: number): this {
    return this.#set("dueAtMs", monotonicMs);
  }

  setSchedulingCostTokens(n: number): this {
    return this.#set("schedulingCostTokens", n);
  }

  setWorkerSelectionTarget(workerId: string, dpRank?: number): this {
    return this.#setTarget(dpRank === undefined ? { workerId } : { workerId, dpRank });
  }

  clearWorkerSelectionTarget(): this {
    return this.#setTarget(null);
  }

  setStrictPriority(n: number): this {
    this.#assertPriority("setStrictPriority");
    return this.#set("strictPriority", n);
  }

  setPriorityJump(seconds: number): this {
    this.#assertPriority("setPriorityJump");
    return this.#set("priorityJump", seconds);
  }

  /** Ends the plugin's say: what it sets from now on changes nothing. */
  take(): ClassifyOverrides {
    this.#taken = true;
    return this.#overrides ?? noOverrides;
  }

  #set<K extends keyof Recorded>(field: K, value: Recorded[K]): this {
    if (isPromise(value)) disown(value);
    if (this.#taken) return this;
    this.#overrides ??= {};
    this.#overrides[field] = value;
    return this;
  }

  /** The pin of a pinned request stands. */
  #setTarget(target: Recorded["target"]): this {
    return this.#input.pinnedWorker ? this : this.#set("target", target);
  }

  #assertPriority(setter: string): void {
    if (!this.#allowPriority) throw new Error(`${setter}: the host does not set allow_priority`);
  }
}
