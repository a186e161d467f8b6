import { Column } from "../kernel/abi.js";
import { unknownBatch } from "./overload.js";
import type { Pool } from "./pool.js";
import type { QueuePool } from "./queue/contract.js";

/** The loads of a pool's ranks, as its queue sees them. */
export class PoolLoads implements QueuePool {
  readonly #pool: Pool & Pick<QueuePool, "refresh">;

  constructor(pool: Pool & Pick<QueuePool, "refresh">) {
    this.#pool = pool;
  }

  get topology(): number {
    return this.#pool.ranks.topology;
  }

  get workers(): number {
    return this.#pool.ranks.workers;
  }

  activePrefillTokens(slot: number): number {
    const { kernel } = this.#pool;
    return kernel.column(Column.prefill)[kernel.exports.rowOf(slot)]!;
  }

  maxNumBatchedTokens(slot: number): number {
    const { ranks, unitsPerToken } = this.#pool;
    return (ranks.at(slot).record.maxNumBatchedTokens ?? unknownBatch) * unitsPerToken;
  }

  refresh(): void {
    this.#pool.refresh();
  }
}
