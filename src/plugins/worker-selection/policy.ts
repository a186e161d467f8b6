import { WarmrouteError } from "../../core/errors.js";
import { checkFields, fieldsOf } from "../../core/fields.js";
import type { WorkerFilter, WorkerPicker, WorkerScorer } from "./components.js";
import { lowestCost } from "./lowest-cost.js";

export interface WorkerSelectionPolicyOptions {
  /** Names the policy in decisions and logs. */
  label: string;
  filters?: readonly WorkerFilter[];
  scorers?: readonly WorkerScorer[];
  /** The lowest cost, ties at random, unless given. */
  picker?: WorkerPicker;
  /** Whether an eligible affinity target decides the worker; otherwise it is advice that the components may read. */
  exclusiveAffinity?: boolean;
  /** A slot's rank is gone: drop what was kept for the slot. */
  onSlotReleased?(slot: number): void;
  /** The pool is gone. */
  close?(): void | Promise<void>;
}

const fields = fieldsOf<WorkerSelectionPolicyOptions>({
  label: "text",
  filters: "list",
  scorers: "list",
  picker: "object",
  exclusiveAffinity: "flag",
  onSlotReleased: "call",
  close: "call",
});

/**
 * One pool's policy. Filters drop candidates, every scorer adds a cost to each that is left, the picker takes one.
 * Components are called one at a time and may keep state.
 */
export class WorkerSelectionPolicy {
  readonly label: string;
  readonly filters: readonly WorkerFilter[];
  readonly scorers: readonly WorkerScorer[];
  readonly picker: WorkerPicker;
  readonly exclusiveAffinity: boolean;
  readonly onSlotReleased: ((slot: number) => void) | undefined;
  readonly close: (() => void | Promise<void>) | undefined;

  /** Throws `invalid_plugin` for an unknown field, a wrong one, and a missing label. */
  constructor(options: WorkerSelectionPolicyOptions) {
    checkFields(options, fields, "WorkerSelectionPolicy", "invalid_plugin");
    if (options.label === undefined) {
      throw new WarmrouteError("invalid_plugin", "WorkerSelectionPolicy needs a label", { path: "label" });
    }
    this.label = options.label;
    // What each requires is read once, so that none may come later.
    this.filters = Object.freeze([...(options.filters ?? [])]);
    this.scorers = Object.freeze([...(options.scorers ?? [])]);
    this.picker = options.picker ?? lowestCost;
    this.exclusiveAffinity = options.exclusiveAffinity ?? false;
    this.onSlotReleased = options.onSlotReleased?.bind(options);
    this.close = options.close?.bind(options);
  }
}
