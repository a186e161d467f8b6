// Which ranks the host takes out of every choice, also of workers that come later (spec: scheduling.md §3.2).
import { WarmrouteError } from "../core/errors.js";
import { describe, type U64Input, workerIdString } from "../core/ids.js";
import { readRank } from "../core/rank.js";
import type { PoolRank } from "../scheduling/ranks.js";
import type { SelectionCore } from "../scheduling/selection-core.js";

/** A worker, or one of its ranks. */
export interface WorkerOrRank {
  workerId: U64Input;
  dpRank?: number;
}

export class Availability {
  /** Names of workers and ranks. Nobody, until the host says so. */
  #overloaded: ReadonlySet<string> = new Set();
  /** Worker ids; undefined: everybody. */
  #available: ReadonlySet<string> | undefined;

  /** Throws `invalid_request`. */
  setOverloaded(ranks: readonly WorkerOrRank[], pools: Iterable<SelectionCore>): void {
    const names = checkList(ranks, "ranks").map((rank, i) => {
      const { workerId, dpRank } = readRank(rank, `ranks[${i}]`);
      return dpRank === undefined ? workerId : `${workerId}/${dpRank}`;
    });
    this.#overloaded = new Set(names);
    this.applyTo(pools);
  }

  /** `null`: every worker. Throws `invalid_request`. */
  setAvailable(workerIds: readonly U64Input[] | null, pools: Iterable<SelectionCore>): void {
    const id = (value: unknown, i: number) => workerIdString(value, `workerIds[${i}]`, "invalid_request");
    this.#available = workerIds === null ? undefined : new Set(checkList(workerIds, "workerIds").map(id));
    this.applyTo(pools);
  }

  /** Brings the ranks of pools in line, for instance those that have just come. */
  applyTo(pools: Iterable<SelectionCore>): void {
    for (const core of pools) {
      for (const rank of core.ranks) {
        const marked = this.#marks(rank);
        if (rank.marked !== marked) core.overload.mark(rank, marked);
        const available = this.#available?.has(rank.workerId) ?? true;
        if (rank.available !== available) core.ranks.setAvailable(rank, available);
      }
      core.queue.changed();
    }
  }

  #marks({ workerId, dpRank }: PoolRank): boolean {
    return (
      this.#overloaded.size > 0 && (this.#overloaded.has(workerId) || this.#overloaded.has(`${workerId}/${dpRank}`))
    );
  }
}

function checkList(value: unknown, path: string): readonly unknown[] {
  // A hole is as wrong as what cannot be read.
  if (Array.isArray(value)) return Array.from(value);
  throw wrong(path, "a list", value);
}

const wrong = (path: string, wanted: string, value: unknown) =>
  new WarmrouteError("invalid_request", `${path} must be ${wanted}, not ${describe(value)}`, { path });
