import { type Clock, systemClock } from "../core/clock.js";
import { type KvRouterConfig, parseConfig } from "../core/config.js";
import { WarmrouteError } from "../core/errors.js";
import { parseEvent } from "../core/event.js";
import { describe, parseU32, parseU64, type U64Input, workerIdString } from "../core/ids.js";
import type { StorageTier, WorkerInput, WorkerRank, WorkerRecord, WorkerRole } from "../core/types.js";
import { parseWorker } from "../core/worker.js";
import { Counter } from "../kernel/abi.js";
import { budgetError, checkBlockSize, Kernel } from "../kernel/kernel.js";
import { poolSeed } from "../scheduling/pool-seed.js";
import type { PoolRank } from "../scheduling/ranks.js";
import { SelectionCore } from "../scheduling/selection-core.js";
import type {
  Booking,
  LoadRow,
  OverlapRow,
  ProbeResult,
  ReserveRequest,
  Router,
  RouterOptions,
  RouterStats,
  Selection,
  SelectRequest,
  SnapshotPart,
} from "./contract.js";
import { RouterSelection } from "./selection.js";
import { readSnapshot, writeSnapshot } from "./snapshot.js";

const GIB = 2 ** 30;
const allParts: readonly SnapshotPart[] = ["index", "load", "random"];

/** One router: one model, and a pool for each routing group and role that its workers name. */
export class KvRouter implements Router {
  readonly model: string;
  readonly blockSize: number;
  readonly config: KvRouterConfig;
  /** Blocks are named by their sequence hashes. */
  readonly ownNames: boolean;
  readonly clock: Clock;
  readonly #options: RouterOptions;
  readonly #seed: bigint;
  readonly #pools = new Map<string, SelectionCore>();
  readonly #workers = new Map<string, { record: WorkerRecord; core: SelectionCore }>();
  #closed = false;

  constructor(options: RouterOptions) {
    const blockSize = options.blockSize === undefined ? 64 : options.blockSize;
    checkBlockSize(blockSize);
    this.model = options.model ?? "default";
    this.blockSize = blockSize;
    this.config = parseConfig(options.config);
    this.clock = options.clock ?? systemClock;
    this.ownNames = options.blockNames === "sequence";
    this.#options = options;
    this.#seed =
      options.seed === undefined
        ? crypto.getRandomValues(new BigUint64Array(1))[0]!
        : parseU64(options.seed, "seed", "invalid_config");
    this.pool("default", "aggregated");
    for (const worker of options.workers ?? []) this.addWorker(worker);
  }

  /** The pool of a routing group and role; made at first use. */
  pool(group: string, role: WorkerRole): SelectionCore {
    const name = `${group}/${role}`;
    let core = this.#pools.get(name);
    if (!core) {
      core = new SelectionCore({
        kernel: this.#kernel(name),
        config: this.config,
        role,
      });
      this.#pools.set(name, core);
    }
    return core;
  }

  #kernel(pool: string): Kernel {
    return new Kernel({
      blockSize: this.blockSize,
      maxRanks: this.#options.maxRanks ?? 16384,
      budgetBytes: this.#options.memoryBudgetBytes ?? GIB,
      ownNames: this.ownNames,
      seed: poolSeed(this.#seed, `${this.model}/${pool}`),
    });
  }

  // ---- decisions

  async select(request: SelectRequest, options: { signal?: AbortSignal } = {}): Promise<Selection> {
    this.#assertOpen();
    options.signal?.throwIfAborted();
    const core = this.#poolOf(request.routingGroup);
    return new RouterSelection(core.select(request), core.policy);
  }

  probe(request: Omit<SelectRequest, "requestId">): ProbeResult {
    this.#assertOpen();
    return this.#poolOf(request.routingGroup).probe(request);
  }

  #poolOf(group: string | undefined): SelectionCore {
    const core = this.#pools.get(group === undefined ? "default/aggregated" : `${group}/aggregated`);
    if (!core) {
      throw new WarmrouteError("no_endpoints", `no worker serves the routing group ${describe(group)}`, {
        path: "routingGroup",
      });
    }
    return core;
  }

  overlap(
    prompt:
      | { tokens: Uint32Array | readonly number[]; loraName?: string; cacheSalt?: string }
      | { blockHashes: BigUint64Array | readonly U64Input[] },
  ): OverlapRow[] {
    this.#assertOpen();
    const core = this.#poolOf(undefined);
    const { kernel } = core;
    let blocks: number;
    if ("tokens" in prompt) {
      const n = kernel.writeTokens(prompt.tokens);
      const seed = kernel.localSeed(prompt.loraName, prompt.cacheSalt);
      blocks = kernel.hashPrompt(n, this.blockSize, seed);
    } else {
      const hashes = prompt.blockHashes;
      blocks = hashes.length;
      const { locals } = kernel.roomForEvent(blocks);
      for (let i = 0; i < blocks; i++) locals[i] = parseU64(hashes[i], `blockHashes[${i}]`);
      if (kernel.exports.chainEvent(blocks) < 0) throw budgetError(`a chain of ${blocks} blocks`);
    }
    return core.contents.overlap(blocks);
  }

  reserve(request: ReserveRequest): Booking {
    this.#assertOpen();
    const id = workerIdString(request.worker.workerId, "worker.workerId", "invalid_request");
    const dpRank = parseU32(request.worker.dpRank ?? 0, "worker.dpRank");
    const { core, rank } = this.#rank(id, dpRank);
    if (!rank) throw unknownWorker(id, dpRank);
    const isl = request.islTokens;
    const charged = request.effectivePrefillTokens ?? isl;
    for (const [path, value] of [
      ["islTokens", isl],
      ["effectivePrefillTokens", charged],
    ] as const) {
      if (!Number.isSafeInteger(value) || value < 0) {
        throw new WarmrouteError("invalid_request", `${path} must be a whole number of tokens`, { path });
      }
    }
    if (charged > isl) {
      throw new WarmrouteError("invalid_request", "effectivePrefillTokens is more than islTokens", {
        path: "effectivePrefillTokens",
      });
    }
    return core!.reserve(request.requestId, rank, request.sequenceHashes, isl, charged);
  }

  /** The live booking of a request, also one that restore() took over. */
  booking(requestId: string): Booking | undefined {
    for (const core of this.#pools.values()) {
      const booking = core.bookings.get(requestId);
      if (booking) return booking;
    }
    return undefined;
  }

  // ---- cache contents

  applyEvent(input: unknown): { applied: boolean; reason?: string } {
    this.#assertOpen();
    const event = parseEvent(input);
    const rank: WorkerRank = { workerId: event.workerId, dpRank: event.dpRank };
    if (event.kind === "stored") return this.storeBlocks(rank, event.tier, event.parent, event.names, event.locals);
    const found = this.#rank(event.workerId, event.dpRank);
    if (!found.rank) return { applied: false, reason: found.core ? "unknown_rank" : "unknown_worker" };
    if (event.kind === "removed") found.core!.contents.remove(found.rank, event.tier, event.names);
    else found.core!.contents.clear(found.rank);
    return { applied: true };
  }

  /** The typed form of a `stored` event: no JSON, no strings. Throws `invalid_event` when the lists differ in length. */
  storeBlocks(
    at: WorkerRank,
    tier: StorageTier,
    parent: bigint | null,
    names: BigUint64Array,
    localHashes: BigUint64Array,
  ): { applied: boolean; reason?: string } {
    if (names.length !== localHashes.length) {
      throw new WarmrouteError("invalid_event", "a store needs as many names as local hashes", { path: "names" });
    }
    const { core, rank } = this.#rank(at.workerId, at.dpRank);
    if (!rank) return { applied: false, reason: core ? "unknown_rank" : "unknown_worker" };
    const reason = core!.contents.store(rank, tier, parent, names, localHashes);
    return reason === undefined ? { applied: true } : { applied: false, reason };
  }

  /** The typed form of a `removed` event. Returns how many of the blocks the rank held. */
  removeBlocks(at: WorkerRank, tier: StorageTier, names: BigUint64Array): number {
    const { core, rank } = this.#rank(at.workerId, at.dpRank);
    return rank ? core!.contents.remove(rank, tier, names) : 0;
  }

  // ---- workers

  /** Adds a worker with all its ranks, or replaces the one with its id. All or nothing. */
  addWorker(input: WorkerInput): WorkerRecord {
    this.#assertOpen();
    const record = parseWorker(input);
    const core = this.pool(record.routingGroup, record.role);
    const free = core.kernel.maxRanks - core.kernel.exports.rankCount();
    const old = this.#workers.get(record.workerId);
    if (record.dpSize > free + (old?.core === core ? old.record.dpSize : 0)) {
      throw new WarmrouteError("too_many_ranks", `a pool holds at most ${core.kernel.maxRanks} ranks`, {
        details: { maxRanks: core.kernel.maxRanks, free, wanted: record.dpSize },
      });
    }
    if (old) this.#removeRanks(old.record, old.core);
    let added = 0;
    try {
      for (; added < record.dpSize; added++) core.addRank(record, record.dpStart + added);
    } catch (error) {
      this.#removeRanks({ ...record, dpSize: added }, core);
      if (old) this.#workers.delete(record.workerId);
      throw error;
    }
    this.#workers.set(record.workerId, { record, core });
    return record;
  }

  removeWorker(workerId: U64Input): boolean {
    this.#assertOpen();
    const id = workerIdString(workerId, "workerId", "invalid_request");
    const found = this.#workers.get(id);
    if (!found) return false;
    this.#removeRanks(found.record, found.core);
    return this.#workers.delete(id);
  }

  #removeRanks(record: WorkerRecord, core: SelectionCore): void {
    for (let i = 0; i < record.dpSize; i++) core.removeRank(record.workerId, record.dpStart + i);
  }

  workers(): WorkerRecord[] {
    return [...this.#workers.values()]
      .map(({ record }) => record)
      .sort((a, b) => (BigInt(a.workerId) < BigInt(b.workerId) ? -1 : 1));
  }

  #rank(workerId: string, dpRank: number): { core?: SelectionCore; rank?: PoolRank } {
    const core = this.#workers.get(workerId)?.core;
    if (!core) return {};
    const rank = core.ranks.get(workerId, dpRank);
    return rank ? { core, rank } : { core };
  }

  // ---- state

  loads(): LoadRow[] {
    return [...this.#pools.values()]
      .flatMap((core) => core.loads())
      .sort((a, b) => {
        if (a.workerId === b.workerId) return a.dpRank - b.dpRank;
        return BigInt(a.workerId) < BigInt(b.workerId) ? -1 : 1;
      });
  }

  stats(): RouterStats {
    const cores = [...this.#pools.values()];
    const sum = (f: (core: SelectionCore) => number) => cores.reduce((total, core) => total + f(core), 0);
    return {
      index: {
        blocks: sum((core) => core.counter(Counter.heldBlocks)),
        bytes: sum((core) => core.counter(Counter.bytes)),
        budgetBytes: sum((core) => core.counter(Counter.budget)),
        orphans: sum((core) => core.contents.orphans),
        refused: sum((core) => core.contents.refused),
        duplicates: sum((core) => core.counter(Counter.duplicates)),
      },
      bookings: { live: sum((core) => core.bookings.size), forgotten: 0, expired: 0 },
      queue: { pending: 0, pendingIslTokens: 0, byClass: {} },
      decisions: sum((core) => core.decisions),
    };
  }

  snapshot(options: { include?: readonly SnapshotPart[] } = {}): Uint8Array {
    this.#assertOpen();
    return writeSnapshot(this.#state(), options.include ?? allParts);
  }

  /** Replaces the given parts of the state by the snapshot's; all of it or, when refused, none. */
  restore(bytes: Uint8Array, options: { parts?: readonly SnapshotPart[] } = {}): void {
    this.#assertOpen();
    readSnapshot(bytes, this.#state(), (pool) => this.#kernel(pool), options.parts ?? allParts);
  }

  #state() {
    const { model, blockSize, ownNames } = this;
    return { model, blockSize, ownNames, pools: this.#pools };
  }

  async close(_options: { graceMs?: number } = {}): Promise<void> {
    this.#closed = true;
    for (const core of this.#pools.values()) for (const booking of core.bookings.values()) booking.free();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #assertOpen(): void {
    if (this.#closed) throw new WarmrouteError("shutting_down", "the router is closed");
  }
}

function unknownWorker(workerId: string, dpRank: number): WarmrouteError {
  return new WarmrouteError("unknown_worker", `worker ${workerId} has no rank ${dpRank}`, {
    details: { workerId, dpRank },
  });
}
