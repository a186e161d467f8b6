import type { Overlap, StorageTier, WorkerRank } from "../core/types.js";
import { Column } from "../kernel/abi.js";
import { eventRefusal, Status } from "../kernel/status.js";
import type { Pool } from "./pool.js";
import type { PoolRank } from "./ranks.js";

const tiers: Record<StorageTier, number> = { device: 0, host_pinned: 1, disk: 2, external: 3 };
/** Names handed to the kernel at once: at most, and what there is always room for (assembly/index.ts `init`). */
const BATCH = 4096;
const SURE = 64;

/** What the ranks of a pool hold, as their events say it. */
export class CacheContents {
  /** Stores refused because their parent was unknown, and for any other reason. */
  orphans = 0;
  refused = 0;
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /**
   * Applies a store of `locals.length` blocks; `parent` is the engine's name of the block before, or null
   * for the start of a prompt. Answers why it was refused, or undefined; a refused store changes nothing.
   */
  store(
    rank: PoolRank,
    tier: StorageTier,
    parent: bigint | null,
    names: BigUint64Array,
    locals: BigUint64Array,
  ): string | undefined {
    if (!this.#pool.usesIndex) {
      this.refused++;
      return "no_index";
    }
    let status = this.#store(rank, tier, parent, names, locals);
    if (status === Status.memoryBudget && this.#pool.predictions?.makeRoom()) {
      status = this.#store(rank, tier, parent, names, locals);
    }
    if (status >= 0) return undefined;
    if (status === Status.orphan) this.orphans++;
    else this.refused++;
    return eventRefusal(status);
  }

  /** Answers the kernel's status. */
  #store(
    rank: PoolRank,
    tier: StorageTier,
    parent: bigint | null,
    names: BigUint64Array,
    locals: BigUint64Array,
  ): number {
    const { kernel } = this.#pool;
    const n = locals.length;
    const area = kernel.eventArea(n);
    if (!area) return Status.memoryBudget;
    area.names.set(names);
    area.locals.set(locals);
    const parentName = BigInt.asIntN(64, parent ?? 0n);
    return kernel.exports.storeEvent(rank.slot, tiers[tier], parent === null ? 0 : 1, parentName, n);
  }

  /** Removes blocks by name; unknown names are counted by the kernel. Answers how many were held. */
  remove(rank: PoolRank, tier: StorageTier, names: BigUint64Array): number {
    const { kernel } = this.#pool;
    const step = kernel.eventArea(Math.min(names.length, BATCH)) ? BATCH : SURE;
    let held = 0;
    for (let from = 0; from < names.length; from += step) {
      const batch = names.subarray(from, from + step);
      kernel.roomForEvent(batch.length).names.set(batch);
      held += kernel.exports.removeEvent(rank.slot, tiers[tier], batch.length);
    }
    return held;
  }

  /** Forgets everything that a rank holds, in every tier, and is believed to hold. */
  clear(rank: PoolRank): void {
    this.#pool.predictions?.clear(rank);
    this.#pool.kernel.exports.clearEvent(rank.slot);
  }

  /** Leading blocks of the kernel's hashed prompt on each rank that holds any, in row order. */
  overlap(blocks: number): (WorkerRank & Omit<Overlap, "sharedBlocks">)[] {
    const { kernel, ranks } = this.#pool;
    kernel.exports.overlapOf(blocks);
    kernel.sync();
    const device = kernel.column(Column.device);
    const host = kernel.column(Column.host);
    const disk = kernel.column(Column.disk);
    const rows = Array.from(ranks, ({ workerId, dpRank }, row) => ({
      workerId,
      dpRank,
      deviceBlocks: device[row]!,
      hostBlocks: host[row]!,
      diskBlocks: disk[row]!,
    }));
    kernel.exports.releaseColumns();
    return rows.filter((row) => row.deviceBlocks + row.hostBlocks + row.diskBlocks > 0);
  }
}
