import { WarmrouteError } from "../core/errors.js";
import { parseEvent, storageTiers } from "../core/event.js";
import { describe } from "../core/ids.js";
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

  /** The typed form of a `stored` event. Throws `invalid_event`, also when the lists differ in length. */
  store(
    at: WorkerRank,
    tier: StorageTier,
    parent: bigint | null,
    names: BigUint64Array,
    localHashes: BigUint64Array,
  ): EventResult {
    checkTyped(at, tier, names);
    if (!(localHashes instanceof BigUint64Array)) throw wrong("localHashes", "a BigUint64Array", localHashes);
    if (parent !== null && typeof parent !== "bigint") throw wrong("parent", "a bigint or null", parent);
    if (names.length !== localHashes.length) {
      throw new WarmrouteError("invalid_event", "a store needs as many names as local hashes", { path: "names" });
    }
    if (!this.#on) return this.#refuse("events_off");
    const { core, rank } = this.#workers.rank(at.workerId, at.dpRank);
    if (!rank) return this.#stranger(core);
    const reason = core!.contents.store(rank, tier, parent, names, localHashes);
    return reason === undefined ? { applied: true } : { applied: false, reason };
  }

  /** The typed form of a `removed` event. Answers how many of the blocks the rank held. Throws `invalid_event`. */
  remove(at: WorkerRank, tier: StorageTier, names: BigUint64Array): number {
    checkTyped(at, tier, names);
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

/** What typed events have in common. */
function checkTyped(at: WorkerRank, tier: StorageTier, names: BigUint64Array): void {
  if (typeof at !== "object" || at === null) throw wrong("at", "{ workerId, dpRank }", at);
  if (!storageTiers.includes(tier)) throw wrong("tier", `one of ${storageTiers.join(", ")}`, tier);
  if (!(names instanceof BigUint64Array)) throw wrong("names", "a BigUint64Array", names);
}

const wrong = (path: string, wanted: string, value: unknown) =>
  new WarmrouteError("invalid_event", `${path} must be ${wanted}, not ${describe(value)}`, { path });
