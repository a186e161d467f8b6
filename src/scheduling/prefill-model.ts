import { describe } from "../core/ids.js";
import type { Logger } from "../core/log.js";
import type { WorkerRank, WorkerRole } from "../core/types.js";

/** A prefill that is about to begin on a rank. */
export interface ModelledPrefill {
  readonly worker: WorkerRank;
  readonly role: WorkerRole;
  /** Prompt tokens that the rank must compute, and those before them that it has cached. */
  readonly newTokens: number;
  readonly cachedTokens: number;
}

/** How long a prefill takes, in milliseconds, with nothing beside it; undefined where it is not known. */
export type PrefillLoadModel = (prefill: ModelledPrefill) => number | undefined;

/** A host's model, which may fail: then the prefill's load stays whole until it completes. */
export class PrefillModel {
  readonly #model: PrefillLoadModel;
  readonly #log: Logger;
  #failed = false;

  constructor(model: PrefillLoadModel, log: Logger) {
    this.#model = model;
    this.#log = log;
  }

  /** Milliseconds, at least 0; undefined when the model knows none. */
  durationMs(prefill: ModelledPrefill): number | undefined {
    try {
      const ms: unknown = this.#model(prefill);
      if (ms === undefined || (typeof ms === "number" && ms >= 0 && Number.isFinite(ms))) return ms;
      this.#failure(prefill, `it must answer milliseconds or undefined, not ${describe(ms)}`);
    } catch (error) {
      this.#failure(prefill, error);
    }
    return undefined;
  }

  /** Said once: a model that fails mostly does so for every request. */
  #failure({ worker }: ModelledPrefill, error: unknown): void {
    if (!this.#failed) this.#log.warn("prefillLoadModel failed; such prefills count whole", { ...worker, error });
    this.#failed = true;
  }
}
