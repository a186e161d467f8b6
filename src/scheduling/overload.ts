// Which ranks are overloaded: those that the host marks, and those over a threshold (spec: scheduling.md §3.3).
import type { KvRouterConfig } from "../core/config.js";
import { Column } from "../kernel/abi.js";
import type { Pool } from "./pool.js";
import type { PoolRank } from "./ranks.js";

/** Each that is given turns on its own check; a rank over any of them is overloaded. */
export type BusyThresholds = Pick<
  KvRouterConfig,
  "activeDecodeBlocksThreshold" | "activePrefillTokensThreshold" | "activePrefillTokensThresholdFrac"
>;

/** The thresholds of a configuration. */
export function thresholdsOf(config: BusyThresholds): BusyThresholds {
  const { activeDecodeBlocksThreshold, activePrefillTokensThreshold, activePrefillTokensThresholdFrac } = config;
  return {
    ...(activeDecodeBlocksThreshold !== undefined && { activeDecodeBlocksThreshold }),
    ...(activePrefillTokensThreshold !== undefined && { activePrefillTokensThreshold }),
    ...(activePrefillTokensThresholdFrac !== undefined && { activePrefillTokensThresholdFrac }),
  };
}

/** Keeps the overload of a pool's ranks up to date. */
export class Overload {
  thresholds: BusyThresholds;
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
    this.thresholds = thresholdsOf(pool.config);
  }

  /** Looks at the loads as they are now; called before every decision. Costs nothing without thresholds. */
  refresh(): void {
    const { activeDecodeBlocksThreshold: blocks, activePrefillTokensThreshold: tokens } = this.thresholds;
    const frac = this.thresholds.activePrefillTokensThresholdFrac;
    if (blocks === undefined && tokens === undefined && frac === undefined) return;
    const { kernel, ranks, unitsPerToken } = this.#pool;
    const prefill = kernel.column(Column.prefill);
    const decode = kernel.column(Column.decode);
    let row = 0;
    for (const rank of ranks) {
      const { totalKvBlocks, maxNumBatchedTokens } = rank.record;
      const isOver =
        (tokens !== undefined && prefill[row]! > tokens) ||
        (frac !== undefined && prefill[row]! > frac * unitsPerToken * (maxNumBatchedTokens ?? unknownBatch)) ||
        (blocks !== undefined && totalKvBlocks !== undefined && decode[row]! > blocks * unitsPerToken * totalKvBlocks);
      this.#set(rank, isOver || rank.marked);
      row++;
    }
  }

  /** The host says of a rank whether it is overloaded; it stays so until the host says otherwise. */
  mark(rank: PoolRank, marked: boolean): void {
    rank.marked = marked;
    this.#set(rank, marked);
    this.refresh();
  }

  /** Thresholds of now on. */
  set(thresholds: BusyThresholds): void {
    this.thresholds = thresholds;
    for (const rank of this.#pool.ranks) this.#set(rank, rank.marked);
    this.refresh();
  }

  #set(rank: PoolRank, overloaded: boolean): void {
    if (rank.overloaded !== overloaded) this.#pool.ranks.setOverloaded(rank, overloaded);
  }
}

/** The token budget of a worker that publishes none: in effect it is never over (spec: scheduling.md §3.1). */
export const unknownBatch = 10_000_000;
