import { Column } from "../kernel/abi.js";
import { unknownBatch } from "./overload.js";
import type { QueuePool } from "./queue/contract.js";
import type { SelectionCore } from "./selection-core.js";

/** The loads of a pool's ranks, as its queue sees them. */
export class PoolLoads implements QueuePool {
  readonly #core: SelectionCore;

  constructor(core: SelectionCore) {
    this.#core = core;
  }

  get topology(): number {
    return this.#core.ranks.topology;
  }

  get workers(): number {
    return this.#core.ranks.workers;
  }

  activePrefillTokens(slot: number): number {
    const { kernel } = this.#core;
    return kernel.column(Column.prefill)[kernel.exports.rowOf(slot)]!;
  }

  maxNumBatchedTokens(slot: number): number {
    const { ranks, unitsPerToken } = this.#core;
    return (ranks.at(slot).record.maxNumBatchedTokens ?? unknownBatch) * unitsPerToken;
  }

  refresh(): void {
    this.#core.refresh();
  }
}
