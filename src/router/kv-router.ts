import type { Clock } from "../core/clock.js";
import type { KvRouterConfig } from "../core/config.js";
import { WarmrouteError } from "../core/errors.js";
import { readGraceMs } from "../core/fields.js";
import { describe, type U64Input, workerIdString } from "../core/ids.js";
import type { StorageTier, WorkerInput, WorkerRank, WorkerRecord } from "../core/types.js";
import { parseWorker } from "../core/worker.js";
import type { RouterPlugins } from "../plugins/bundle.js";
import { BookingHandle } from "../scheduling/bookings/booking-handle.js";
import { outcomeError } from "../scheduling/eligibility.js";
import type { BusyThresholds } from "../scheduling/overload.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
import { readAttributes } from "./attributes.js";
import type { WorkerOrRank } from "./availability.js";
import { CacheEvents, type EventResult } from "./cache-events.js";
import type {
  Booking,
  CallOptions,
  Decision,
  LoadRow,
  OverlapPrompt,
  OverlapRow,
  ProbeResult,
  ReserveRequest,
  RestoreResult,
  RouteOptions,
  Router,
  RouterOptions,
  RouterStats,
  Selection,
  SelectRequest,
  SnapshotPart,
} from "./contract.js";
import type { RouterEdge } from "./edge.js";
import type { EntryPointName } from "./entry-points.js";
import { Lifetime } from "./lifetime.js";
import { OpenAiCalls } from "./openai-calls.js";
import { overlapOf } from "./overlap.js";
import { RouterParts } from "./parts.js";
import { poolRequest } from "./pool-request.js";
import { checkCallOptions, checkReserve, checkSelect, readHeaders, readParts, readThresholds } from "./read-request.js";
import { readSnapshot, writeSnapshot } from "./snapshot.js";
import { loadsOf, statsOf } from "./stats.js";

/** Who builds a router. */
export interface RouterHost {
  entryPoint: EntryPointName;
  edge?: RouterEdge;
}

/** One router: one model, and a pool for each routing group and role that its workers name. */
export class KvRouter implements Router {
  readonly model: string;
  readonly blockSize: number;
  readonly config: KvRouterConfig;
  readonly plugins: RouterPlugins;
  readonly clock: Clock;
  /** Blocks are named by their sequence hashes. */
  readonly ownNames: boolean;
  readonly #options: RouterOptions;
  readonly #lifetime = new Lifetime();
  readonly #parts: RouterParts;
  readonly #events: CacheEvents;
  readonly #calls: OpenAiCalls;

  /** As `createRouter`, which is how to call it. */
  constructor(options: RouterOptions, host: RouterHost = { entryPoint: "KvRouter" }) {
    const parts = new RouterParts(options, host.entryPoint, this.#lifetime);
    this.model = parts.model;
    this.blockSize = parts.blockSize;
    this.config = parts.config;
    this.plugins = parts.plugins;
    this.clock = parts.clock;
    this.ownNames = parts.ownNames;
    this.#options = options;
    this.#parts = parts;
    this.#events = new CacheEvents(parts.workers, parts.config.useKvEvents);
    this.#calls = new OpenAiCalls(this, options, host.edge);
  }

  /** Takes part in one more entry point. Throws `role_not_served` or `classifier_not_supported`. */
  serveAt(entryPoint: EntryPointName): void {
    this.#parts.serveAt(entryPoint);
  }

  // ---- decisions

  async select(request: SelectRequest, options: CallOptions = {}): Promise<Selection> {
    this.#lifetime.assertOpen();
    checkCallOptions(options);
    const { signal } = options;
    signal?.throwIfAborted();
    checkSelect(request);
    const core = this.#poolFor(request);
    if (!core) throw noPool(request);
    if (request.unitsPerToken !== undefined) core.unitsPerToken = request.unitsPerToken;
    return this.#parts.admission.begin(core, request, this.#attributesOf(options), signal);
  }

  route(body: Record<string, unknown>, options: RouteOptions = {}): Promise<Selection> {
    return this.#calls.route(body, options);
  }

  generate(body: Record<string, unknown>, options: RouteOptions = {}): AsyncGenerator<unknown, void> {
    return this.#calls.generate(body, options);
  }

  /** Bound, so that it can be handed to a server as it is. */
  readonly fetch = (request: Request): Promise<Response> => this.#calls.fetch(request);

  probe(request: Omit<SelectRequest, "requestId">): ProbeResult {
    return this.#probe(request, "probe");
  }

  bestWorker(request: Omit<SelectRequest, "requestId">): WorkerRank {
    const { outcome, selected } = this.#probe(request, "bestWorker");
    if (outcome !== "selected") throw outcomeError(outcome);
    return selected!;
  }

  #probe(request: Omit<SelectRequest, "requestId">, call: string): ProbeResult {
    this.#lifetime.assertOpen();
    checkSelect(request);
    this.#parts.installed.classifier?.bypass(call);
    const attributes = this.#attributesOf({});
    const core = this.#poolFor(request);
    if (!core) return { outcome: "no_endpoints", selected: null, candidates: [], excluded: [] };
    return core.probe(poolRequest({ core, request, attributes }, undefined));
  }

  #attributesOf({ headers, auth, body }: CallOptions): ReadonlyMap<string, string> | undefined {
    const { attributes } = this.#options;
    return attributes && readAttributes(attributes, { headers: readHeaders(headers), body, auth });
  }

  #poolFor({ routingGroup = "default", role = "aggregated" }: SelectRequest): SelectionCore | undefined {
    return this.#parts.pools.get(routingGroup, role);
  }

  overlap(prompt: OverlapPrompt): OverlapRow[] {
    this.#lifetime.assertOpen();
    return overlapOf(this.#parts.defaultPool(), prompt);
  }

  reserve(request: ReserveRequest): Booking {
    this.#lifetime.assertOpen();
    const { workerId, dpRank, charged } = checkReserve(request);
    const { core, rank } = this.#parts.workers.rank(workerId, dpRank);
    if (!rank) throw unknownWorker(workerId, dpRank);
    core!.refresh();
    const booking = core!.reserve(request.requestId, rank, request.sequenceHashes, request.islTokens, charged);
    return this.#parts.handles.owner(booking);
  }

  /**
   * The live booking of a request, also one that restore() took over. This object does not own the booking: whoever
   * selected or reserved does, and nobody owns a restored one.
   */
  booking(requestId: string): Booking | undefined {
    const booking = this.#parts.requestIds.get(requestId);
    return booking && new BookingHandle(booking);
  }

  // ---- cache contents

  applyEvent(event: unknown): EventResult {
    this.#lifetime.assertNotEnded();
    return this.#events.apply(event);
  }

  /** The typed form of a `stored` event: no JSON, no strings. Throws `invalid_event` when the lists differ in length. */
  storeBlocks(
    at: WorkerRank,
    tier: StorageTier,
    parent: bigint | null,
    names: BigUint64Array,
    localHashes: BigUint64Array,
  ): EventResult {
    return this.#events.store(at, tier, parent, names, localHashes);
  }

  /** The typed form of a `removed` event. Returns how many of the blocks the rank held. */
  removeBlocks(at: WorkerRank, tier: StorageTier, names: BigUint64Array): number {
    return this.#events.remove(at, tier, names);
  }

  // ---- workers

  /**
   * Adds a worker with all its ranks, or updates the one with its id: ranks that stay keep their cache contents
   * and bookings, unless the incarnation is another. All or nothing. Throws `invalid_worker`, `role_not_served`,
   * `too_many_ranks`, `memory_budget`, or what building the pool's policy throws.
   */
  addWorker(input: WorkerInput): WorkerRecord {
    this.#lifetime.assertOpen();
    return this.#parts.addWorker(parseWorker(input));
  }

  removeWorker(workerId: U64Input): boolean {
    this.#lifetime.assertNotEnded();
    return this.#parts.workers.remove(workerIdString(workerId, "workerId", "invalid_request"));
  }

  workers(): WorkerRecord[] {
    return this.#parts.workers.list();
  }

  /** Throws `invalid_request`. See `Router.busyThresholds`. */
  busyThresholds(thresholds?: BusyThresholds): BusyThresholds {
    this.#lifetime.assertNotEnded();
    return this.#parts.busyThresholds(thresholds && readThresholds(thresholds));
  }

  setOverloaded(ranks: readonly WorkerOrRank[]): void {
    this.#lifetime.assertNotEnded();
    this.#parts.pools.assertFree();
    this.#parts.availability.setOverloaded(ranks, this.#parts.pools);
  }

  setAvailable(workerIds: readonly U64Input[] | null): void {
    this.#lifetime.assertNotEnded();
    this.#parts.pools.assertFree();
    this.#parts.availability.setAvailable(workerIds, this.#parts.pools);
  }

  // ---- state

  loads(): LoadRow[] {
    this.#parts.refresh();
    return loadsOf(this.#parts);
  }

  stats(): RouterStats {
    this.#parts.refresh();
    return statsOf(this.#parts, this.#events.refused);
  }

  decisions(): Decision[] {
    return this.#parts.decisions?.list() ?? [];
  }

  snapshot(options: { include?: readonly SnapshotPart[] } = {}): Uint8Array {
    this.#lifetime.assertNotEnded();
    return writeSnapshot(this.#state(), readParts(options, "include"));
  }

  /**
   * Replaces the given parts of the state by the snapshot's; all of it or, when refused, none. Add the workers first:
   * what the snapshot says of ranks that are not here is dropped, and counted in the answer. Throws
   * `snapshot_<reason>`, `memory_budget` or `invalid_request`.
   */
  restore(bytes: Uint8Array, options: { parts?: readonly SnapshotPart[] } = {}): RestoreResult {
    this.#lifetime.assertOpen();
    const parts = readParts(options, "parts");
    const { workers, pools } = this.#parts;
    const newKernel = (pool: string) => pools.kernel(pool);
    return workers.exclusively(() => readSnapshot(bytes, this.#state(), newKernel, parts));
  }

  #state() {
    const { model, blockSize, ownNames } = this;
    return { model, blockSize, ownNames, pools: this.#parts.pools.byName };
  }

  /**
   * Refuses new requests at once. Those that are live may end within `graceMs` (0 unless given), and their events and
   * workers come and go until then; the rest is aborted, and classifier and policies are closed. A second call waits
   * for the first. Rejects with `invalid_request` for a bad `graceMs`.
   */
  async close(options: { graceMs?: number } = {}): Promise<void> {
    const graceMs = readGraceMs(options);
    const { pools, requestIds, installed, log } = this.#parts;
    const { classifier } = installed;
    const pending = () => [...pools].reduce((sum, { queue }) => sum + queue.pending, 0);
    return this.#lifetime.close(graceMs, {
      live: () => Math.max(requestIds.size + pending(), classifier?.stats().live ?? 0),
      abort: (error) => {
        for (const core of pools) core.end(error);
      },
      closePlugins: () => Promise.all([classifier?.close(), pools.close()]),
      clock: this.clock,
      log,
    });
  }

  /** Ends every live booking. */
  freeAll(): void {
    for (const core of this.#parts.pools) for (const booking of core.bookings) booking.free();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function noPool({ routingGroup, role = "aggregated" }: SelectRequest): WarmrouteError {
  const of = routingGroup === undefined ? "" : ` of the routing group ${describe(routingGroup)}`;
  const path = routingGroup === undefined ? "role" : "routingGroup";
  return new WarmrouteError("no_endpoints", `there is no ${role} worker${of}`, { path });
}

function unknownWorker(workerId: string, dpRank: number): WarmrouteError {
  return new WarmrouteError("unknown_worker", `worker ${workerId} has no rank ${dpRank}`, {
    details: { workerId, dpRank },
  });
}
