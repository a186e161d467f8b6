import { type Clock, systemClock } from "../core/clock.js";
import { type KvRouterConfig, parseConfig } from "../core/config.js";
import { WarmrouteError } from "../core/errors.js";
import { parseEvent, storageTiers } from "../core/event.js";
import { describe, parseU32, parseU64, type U64Input, workerIdString } from "../core/ids.js";
import { consoleLogger } from "../core/log.js";
import type { StorageTier, WorkerInput, WorkerRank, WorkerRecord, WorkerRole } from "../core/types.js";
import { parseWorker } from "../core/worker.js";
import { Counter } from "../kernel/abi.js";
import { budgetError, checkBlockSize, Kernel } from "../kernel/kernel.js";
import { defaultBudget } from "../kernel/module.js";
import { defaultSelection } from "../plugins/worker-selection/built-in.js";
import { createPool } from "../scheduling/policy-factory.js";
import { poolSeed } from "../scheduling/pool-seed.js";
import { RequestIds } from "../scheduling/request-ids.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
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
import { checkOptions, checkReserve, checkSelect, readParts } from "./read-request.js";
import { RouterSelection } from "./selection.js";
import { readSnapshot, writeSnapshot } from "./snapshot.js";
import { WorkerTable } from "./workers.js";

const DEFAULT_POOL = "default/aggregated";

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
  readonly #workers: WorkerTable;
  readonly #requestIds = new RequestIds();
  #refused = 0;
  #closed = false;

  constructor(options: RouterOptions) {
    checkOptions(options);
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
    this.#workers = new WorkerTable(this.#pools, (name, role) => this.#newPool(name, role));
    this.#pools.set(DEFAULT_POOL, this.#newPool(DEFAULT_POOL, "aggregated"));
    for (const [i, worker] of (options.workers ?? []).entries()) {
      const record = parseWorker(worker, `workers[${i}]`);
      if (this.#workers.has(record.workerId)) {
        throw new WarmrouteError("invalid_worker", `workers[${i}] repeats the worker ${record.workerId}`, {
          path: `workers[${i}].workerId`,
        });
      }
      this.#workers.add(record);
    }
  }

  #newPool(name: string, role: WorkerRole): SelectionCore {
    return createPool({
      kernel: this.#kernel(name),
      config: this.config,
      role,
      requestIds: this.#requestIds,
      factory: defaultSelection,
      partition: { model: this.model, routingGroup: name.slice(0, name.lastIndexOf("/")) },
      clock: this.clock,
      log: consoleLogger,
    });
  }

  #kernel(pool: string): Kernel {
    return new Kernel({
      blockSize: this.blockSize,
      maxRanks: this.#options.maxRanks ?? 16384,
      budgetBytes: this.#options.memoryBudgetBytes ?? defaultBudget(),
      ownNames: this.ownNames,
      seed: poolSeed(this.#seed, `${this.model}/${pool}`),
    });
  }

  // ---- decisions

  async select(request: SelectRequest, options: { signal?: AbortSignal } = {}): Promise<Selection> {
    this.#assertOpen();
    options.signal?.throwIfAborted();
    checkSelect(request);
    const core = this.#poolOf(request.routingGroup);
    if (!core) {
      throw new WarmrouteError("no_endpoints", `no worker serves the routing group ${describe(request.routingGroup)}`, {
        path: "routingGroup",
      });
    }
    return new RouterSelection(core.select(request), core.policy.label);
  }

  probe(request: Omit<SelectRequest, "requestId">): ProbeResult {
    this.#assertOpen();
    checkSelect(request);
    const core = this.#poolOf(request.routingGroup);
    return core?.probe(request) ?? { outcome: "no_endpoints", selected: null, candidates: [], excluded: [] };
  }

  #poolOf(group: string | undefined): SelectionCore | undefined {
    return this.#pools.get(group === undefined ? DEFAULT_POOL : `${group}/aggregated`);
  }

  overlap(
    prompt:
      | { tokens: Uint32Array | readonly number[]; loraName?: string; cacheSalt?: string }
      | { blockHashes: BigUint64Array | readonly U64Input[] },
  ): OverlapRow[] {
    this.#assertOpen();
    const core = this.#poolOf(undefined)!;
    const { kernel } = core;
    let blocks: number;
    if (typeof prompt !== "object" || prompt === null || !("tokens" in prompt || "blockHashes" in prompt)) {
      throw new WarmrouteError("invalid_request", "give tokens or blockHashes", { path: "tokens" });
    }
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
    checkReserve(request);
    const id = workerIdString(request.worker.workerId, "worker.workerId", "invalid_request");
    const dpRank = parseU32(request.worker.dpRank ?? 0, "worker.dpRank");
    const { core, rank } = this.#workers.rank(id, dpRank);
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
    return this.#requestIds.get(requestId);
  }

  // ---- cache contents

  applyEvent(input: unknown): { applied: boolean; reason?: string } {
    this.#assertOpen();
    const event = parseEvent(input);
    const rank: WorkerRank = { workerId: event.workerId, dpRank: event.dpRank };
    if (event.kind === "stored") return this.storeBlocks(rank, event.tier, event.parent, event.names, event.locals);
    const found = this.#workers.rank(event.workerId, event.dpRank);
    if (!found.rank) return this.#stranger(found.core);
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
    if (!storageTiers.includes(tier)) {
      throw new WarmrouteError("invalid_event", `tier must be one of ${storageTiers.join(", ")}`, { path: "tier" });
    }
    if (names.length !== localHashes.length) {
      throw new WarmrouteError("invalid_event", "a store needs as many names as local hashes", { path: "names" });
    }
    const { core, rank } = this.#workers.rank(at.workerId, at.dpRank);
    if (!rank) return this.#stranger(core);
    const reason = core!.contents.store(rank, tier, parent, names, localHashes);
    return reason === undefined ? { applied: true } : { applied: false, reason };
  }

  #stranger(core: SelectionCore | undefined): { applied: false; reason: string } {
    this.#refused++;
    return { applied: false, reason: core ? "unknown_rank" : "unknown_worker" };
  }

  /** The typed form of a `removed` event. Returns how many of the blocks the rank held. */
  removeBlocks(at: WorkerRank, tier: StorageTier, names: BigUint64Array): number {
    const { core, rank } = this.#workers.rank(at.workerId, at.dpRank);
    return rank ? core!.contents.remove(rank, tier, names) : 0;
  }

  // ---- workers

  /**
   * Adds a worker with all its ranks, or updates the one with its id: ranks that stay keep their cache contents
   * and bookings, unless the incarnation is another. All or nothing. Throws `invalid_worker`, `too_many_ranks`
   * or `memory_budget`.
   */
  addWorker(input: WorkerInput): WorkerRecord {
    this.#assertOpen();
    return this.#workers.add(parseWorker(input));
  }

  removeWorker(workerId: U64Input): boolean {
    this.#assertOpen();
    return this.#workers.remove(workerIdString(workerId, "workerId", "invalid_request"));
  }

  workers(): WorkerRecord[] {
    return this.#workers.list();
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
        refused: this.#refused + sum((core) => core.contents.refused),
        duplicates: sum((core) => core.counter(Counter.duplicates)),
      },
      bookings: { live: this.#requestIds.size, forgotten: 0, expired: 0 },
      queue: { pending: 0, pendingIslTokens: 0, byClass: {} },
      decisions: sum((core) => core.decisions),
    };
  }

  snapshot(options: { include?: readonly SnapshotPart[] } = {}): Uint8Array {
    this.#assertOpen();
    return writeSnapshot(this.#state(), readParts(options, "include"));
  }

  /** Replaces the given parts of the state by the snapshot's; all of it or, when refused, none. */
  restore(bytes: Uint8Array, options: { parts?: readonly SnapshotPart[] } = {}): void {
    this.#assertOpen();
    readSnapshot(bytes, this.#state(), (pool) => this.#kernel(pool), readParts(options, "parts"));
  }

  #state() {
    const { model, blockSize, ownNames } = this;
    return { model, blockSize, ownNames, pools: this.#pools };
  }

  async close(_options: { graceMs?: number } = {}): Promise<void> {
    this.#closed = true;
    this.freeAll();
  }

  /** Ends every live booking. */
  freeAll(): void {
    for (const core of this.#pools.values()) for (const booking of core.bookings) booking.free();
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
