import { WarmrouteError } from "../core/errors.js";
import type { WorkerRank, WorkerRecord } from "../core/types.js";
import type { PoolRank } from "../scheduling/ranks.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
import type { Pools } from "./pools.js";

/** A worker and the pool that its ranks are in. */
interface Member {
  record: WorkerRecord;
  core: SelectionCore;
}

const ranksOf = (record: WorkerRecord) => Array.from({ length: record.dpSize }, (_, i) => record.dpStart + i);
const isRankOf = (record: WorkerRecord, dpRank: number) =>
  dpRank >= record.dpStart && dpRank < record.dpStart + record.dpSize;

/** The workers of a router, and the pools that they make: one for each routing group and role. */
export class WorkerTable {
  readonly #members = new Map<string, Member>();
  readonly #pools: Pools;
  #changing = false;

  constructor(pools: Pools) {
    this.#pools = pools;
  }

  /** One change at a time: a plugin that is told of one, or made for it, must not begin another. */
  exclusively<T>(change: () => T): T {
    if (this.#changing) {
      throw new WarmrouteError("policy_failed", "a plugin changed the router's workers in the middle of such a change");
    }
    this.#changing = true;
    try {
      return change();
    } finally {
      this.#changing = false;
    }
  }

  /** Adds a worker or updates the one with its id (see `KvRouter.addWorker`); all or nothing. */
  add(record: WorkerRecord): WorkerRecord {
    return this.exclusively(() => this.#add(record));
  }

  #add(record: WorkerRecord): WorkerRecord {
    const { routingGroup, role } = record;
    const old = this.#members.get(record.workerId);
    // A component of the old pool's policy may be what calls: then nothing may move.
    old?.core.kernel.assertFree();
    const isNew = this.#pools.get(routingGroup, role) === undefined;
    const core = this.#pools.open(routingGroup, role);
    try {
      this.#admit(record, core, old);
    } catch (error) {
      if (isNew) this.#pools.discard(routingGroup, role);
      throw error;
    }
    if (old) for (const dpRank of ranksOf(old.record)) this.#retire(old, dpRank, record, core);
    this.#members.set(record.workerId, { record, core });
    if (old && old.core !== core) this.#pools.trim();
    return record;
  }

  /** Removes a worker with its ranks; false when there is none. */
  remove(workerId: string): boolean {
    return this.exclusively(() => {
      const member = this.#members.get(workerId);
      if (!member) return false;
      for (const dpRank of ranksOf(member.record)) member.core.removeRank(workerId, dpRank);
      this.#members.delete(workerId);
      this.#pools.trim();
      return true;
    });
  }

  has(workerId: string): boolean {
    return this.#members.has(workerId);
  }

  /** All records, by id as u64. */
  list(): WorkerRecord[] {
    return [...this.#members.values()]
      .map(({ record }) => record)
      .sort((a, b) => (BigInt(a.workerId) < BigInt(b.workerId) ? -1 : 1));
  }

  /** Every rank with the capacity that it publishes, as classifiers see them; a new list each time. */
  capacity(): { worker: WorkerRank; totalKvBlocks?: number }[] {
    return [...this.#members.values()].flatMap(({ record }) =>
      ranksOf(record).map((dpRank) => ({
        worker: { workerId: record.workerId, dpRank },
        ...(record.totalKvBlocks === undefined ? {} : { totalKvBlocks: record.totalKvBlocks }),
      })),
    );
  }

  /** The pool of a worker and its rank, as far as they exist. */
  rank(workerId: string, dpRank: number): { core?: SelectionCore; rank?: PoolRank } {
    const core = this.#members.get(workerId)?.core;
    if (!core) return {};
    const rank = core.ranks.get(workerId, dpRank);
    return rank ? { core, rank } : { core };
  }

  /** Adds the ranks of a worker that the pool does not have yet; all or none. */
  #admit(record: WorkerRecord, core: SelectionCore, old: Member | undefined): void {
    const fresh = ranksOf(record).filter((dpRank) => !core.ranks.get(record.workerId, dpRank));
    const leaving = old?.core === core ? ranksOf(old.record).filter((dpRank) => !isRankOf(record, dpRank)) : [];
    const room = core.kernel.maxRanks - core.kernel.exports.rankCount();
    if (fresh.length > room + leaving.length) {
      throw new WarmrouteError("too_many_ranks", `a pool holds at most ${core.kernel.maxRanks} ranks`, {
        details: { maxRanks: core.kernel.maxRanks, wanted: record.dpSize },
      });
    }
    // Only when the new ranks need the places of those that leave do these go first: then nothing can fail.
    if (fresh.length > room) for (const dpRank of leaving) core.removeRank(record.workerId, dpRank);
    const added: number[] = [];
    try {
      for (const dpRank of fresh) {
        core.addRank(record, dpRank);
        added.push(dpRank);
      }
    } catch (error) {
      for (const dpRank of added) core.removeRank(record.workerId, dpRank);
      throw error;
    }
  }

  /** A rank of a worker's old record leaves, starts anew, or goes on under the new record. */
  #retire(old: Member, dpRank: number, record: WorkerRecord, core: SelectionCore): void {
    const rank = old.core.ranks.get(record.workerId, dpRank);
    if (!rank) return;
    if (old.core !== core || !isRankOf(record, dpRank)) old.core.removeRank(record.workerId, dpRank);
    else {
      if (old.record.incarnation !== record.incarnation) core.restartRank(rank);
      core.updateRank(rank, record);
    }
  }
}
