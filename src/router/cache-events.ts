import { WarmrouteError } from "../core/errors.js";
import { parseEvent, storageTiers } from "../core/event.js";
import type { StorageTier, WorkerRank } from "../core/types.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
import type { WorkerTable } from "./workers.js";

/** Whether an event changed anything, and why not. */
export interface EventResult {
  applied: boolean;
  reason?: string;
}

/** Brings the events of engines to the pools of their ranks. */
export class CacheEvents {
  /** Events of workers and ranks that are not here, and all of them where the router takes none. */
  refused = 0;
  readonly #workers: WorkerTable;
  readonly #on: boolean;

  /** With `on` false (`config.useKvEvents`) every event is refused. */
  constructor(workers: WorkerTable, on: boolean) {
    this.#workers = workers;
    this.#on = on;
  }

  /** Applies a RouterEvent. Throws `invalid_event`. */
  apply(input: unknown): EventResult {
    const event = parseEvent(input);
    const rank: WorkerRank = { workerId: event.workerId, dpRank: event.dpRank };
    if (event.kind === "stored") return this.store(rank, event.tier, event.parent, event.names, event.locals);
    if (!this.#on) return this.#refuse("events_off");
    const found = this.#workers.rank(event.workerId, event.dpRank);
    if (!found.rank) return this.#stranger(found.core);
    if (event.kind === "removed") found.core!.contents.remove(found.rank, event.tier, event.names);
    else found.core!.contents.clear(found.rank);
    return { applied: true };
  }

  /** The typed form of a `stored` event. Throws `invalid_event` when the lists differ in length. */
  store(
    at: WorkerRank,
    tier: StorageTier,
    parent: bigint | null,
    names: BigUint64Array,
    localHashes: BigUint64Array,
  ): EventResult {
    if (!storageTiers.includes(tier)) {
      throw new WarmrouteError("invalid_event", `tier must be one of ${storageTiers.join(", ")}`, { path: "tier" });
    }
    if (names.length !== localHashes.length) {
      throw new WarmrouteError("invalid_event", "a store needs as many names as local hashes", { path: "names" });
    }
    if (!this.#on) return this.#refuse("events_off");
    const { core, rank } = this.#workers.rank(at.workerId, at.dpRank);
    if (!rank) return this.#stranger(core);
    const reason = core!.contents.store(rank, tier, parent, names, localHashes);
    return reason === undefined ? { applied: true } : { applied: false, reason };
  }

  /** The typed form of a `removed` event. Answers how many of the blocks the rank held. */
  remove(at: WorkerRank, tier: StorageTier, names: BigUint64Array): number {
    if (!this.#on) {
      this.refused++;
      return 0;
    }
    const { core, rank } = this.#workers.rank(at.workerId, at.dpRank);
    return rank ? core!.contents.remove(rank, tier, names) : 0;
  }

  #stranger(core: SelectionCore | undefined): EventResult {
    return this.#refuse(core ? "unknown_rank" : "unknown_worker");
  }

  #refuse(reason: string): EventResult {
    this.refused++;
    return { applied: false, reason };
  }
}
