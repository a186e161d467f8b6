import type { KvRouterConfig } from "../../core/config.js";
import type { WorkerInputs } from "./components.js";
import { WorkerSelectionPolicy } from "./policy.js";

/** A policy's program inside the kernel (assembly/select/decide.ts): hash, match, score, pick and book in one call. */
export interface KernelProgram {
  /** Its number in the request row. */
  readonly number: number;
  /** What it reads. */
  readonly requiredInputs: WorkerInputs;
  /** Whether it gives rows a cost; otherwise candidates are shown with their terms alone. */
  readonly hasCosts: boolean;
  /** The softmax temperature of one request; at 0 the lowest cost is taken. */
  temperature(config: KvRouterConfig): number;
  /** Writes its parameters into the request row. `config` is the router's, with the request's override. */
  writeParameters(row: Float64Array, config: KvRouterConfig): void;
  /** Names what the kernel's `explainTerms` gave for one row. */
  terms(values: Float64Array): Record<string, number | string>;
}

/** A policy that runs inside the kernel instead of in components. */
export class KernelPolicy extends WorkerSelectionPolicy {
  readonly program: KernelProgram;

  constructor(label: string, exclusiveAffinity: boolean, program: KernelProgram) {
    super({ label, exclusiveAffinity });
    this.program = program;
  }
}
