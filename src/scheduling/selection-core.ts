import { applyOverride, type ConfigOverride, type KvRouterConfig } from "../core/config.js";
import { WarmrouteError } from "../core/errors.js";
import { describe, parseU32, parseU64, type U64Input, workerIdString } from "../core/ids.js";
import type {
  Candidate,
  Evidence,
  Excluded,
  Outcome,
  Overlap,
  Reason,
  StorageTier,
  WorkerRank,
  WorkerRankInput,
  WorkerRecord,
  WorkerRole,
} from "../core/types.js";
import { Column, type Counter } from "../kernel/abi.js";
import { budgetError, type Kernel } from "../kernel/kernel.js";
import { eventRefusal, Status } from "../kernel/status.js";
import { type BookingOwner, type BookingState, PoolBooking } from "./booking.js";
import { type BuiltInPolicy, explainedTerms, policyNumber, type TwoTierParameters } from "./built-in.js";
import {
  type ConstraintInput,
  type Constraints,
  emptyOutcome,
  exclusionOf,
  outcomeError,
  type PoolRank,
  pinOutcome,
  preferenceOf,
  readConstraints,
} from "./eligibility.js";

export interface SelectionCoreOptions {
  kernel: Kernel;
  config: KvRouterConfig;
  role: WorkerRole;
  policy?: BuiltInPolicy;
  twoTier?: TwoTierParameters;
}

/** A selection request as the core takes it. */
export interface PoolRequest extends ConstraintInput {
  requestId?: string;
  tokens: Uint32Array | readonly number[];
  loraName?: string;
  cacheSalt?: string;
  expectedOutputTokens?: number;
  pinnedWorker?: WorkerRankInput;
  configOverride?: ConfigOverride;
  explain?: boolean;
}

/** A decision with its booking. */
export interface PoolSelection {
  requestId: string;
  worker: WorkerRank;
  record: WorkerRecord;
  overlap: Overlap;
  cachedTokens: number;
  effectivePrefillTokens: number;
  evidence: Evidence;
  reason: Reason;
  tieDraw: number | undefined;
  candidates: Candidate[] | undefined;
  booking: PoolBooking;
}

export interface Explanation {
  outcome: Outcome;
  selected: WorkerRank | null;
  candidates: Candidate[];
  excluded: Excluded[];
}

/** Bits of the request row's flags (assembly/select/cost.ts and decide.ts). */
export const RequestFlag = {
  track: 1,
  decodeRole: 2,
  lower: 4,
  shared: 8,
  taints: 16,
  mask: 32,
  book: 1 << 8,
  privateBlocks: 1 << 9,
  noIndex: 1 << 10,
  noPromptBlocks: 1 << 11,
  probe: 1 << 12,
  keep: 1 << 13,
} as const;

const tiers: Record<StorageTier, number> = { device: 0, host_pinned: 1, disk: 2, external: 3 };
const PARAMS = 8; // doubles into the request row
const TWO_TIER = 16;

/**
 * One pool: the ranks of one role of one partition, their cache contents and their load.
 * Select → book → answer is one synchronous step that nothing interleaves.
 */
export class SelectionCore implements BookingOwner {
  kernel: Kernel;
  readonly config: KvRouterConfig;
  readonly blockSize: number;
  readonly policy: BuiltInPolicy;
  readonly twoTier: TwoTierParameters;
  readonly role: WorkerRole;
  readonly ranks: (PoolRank | undefined)[] = [];
  readonly bookings = new Map<string, PoolBooking>();
  decisions = 0;
  orphans = 0;
  refused = 0;
  #slots = new Map<string, number>();
  #freeSlots: number[] = [];
  #nextRequest = 1;

  constructor(options: SelectionCoreOptions) {
    this.kernel = options.kernel;
    this.config = options.config;
    this.blockSize = options.kernel.blockSize;
    this.role = options.role;
    this.policy = options.policy ?? "dynamo-default-cost-fn";
    this.twoTier = options.twoTier ?? { cacheThreshold: 0.5, balanceAbsThreshold: 32, balanceRelThreshold: 1.1 };
  }

  get tracksOutputBlocks(): boolean {
    return this.config.routerTrackOutputBlocks;
  }

  /** Whether any credit can be given, so that an index is worth keeping. */
  get usesIndex(): boolean {
    const c = this.config;
    return (
      c.overlapScoreCredit > 0 || c.hostCacheHitWeight > 0 || c.diskCacheHitWeight > 0 || c.sharedCacheMultiplier > 0
    );
  }

  // ---- ranks

  /** Adds one rank. Throws `too_many_ranks` or `memory_budget`. */
  addRank(record: WorkerRecord, dpRank: number): void {
    const slot = this.#freeSlots.pop() ?? this.ranks.length;
    const status = this.kernel.exports.rankAdd(slot, BigInt.asIntN(64, BigInt(record.workerId)), dpRank);
    if (status !== Status.ok) {
      if (slot < this.ranks.length) this.#freeSlots.push(slot);
      if (status === Status.memoryBudget) throw budgetError("another rank");
      throw new WarmrouteError("too_many_ranks", `a pool holds at most ${this.kernel.maxRanks} ranks`, {
        details: { maxRanks: this.kernel.maxRanks },
      });
    }
    this.ranks[slot] = { slot, record, workerId: record.workerId, dpRank, overloaded: false };
    this.#slots.set(rankKey(record.workerId, dpRank), slot);
  }

  /** Removes one rank with its cache contents and its bookings. */
  removeRank(workerId: string, dpRank: number): boolean {
    const slot = this.#slots.get(rankKey(workerId, dpRank));
    if (slot === undefined) return false;
    for (const booking of this.bookings.values()) {
      if (booking.slot === slot) {
        booking.live = false;
        this.bookings.delete(booking.requestId);
      }
    }
    this.kernel.exports.clearEvent(slot);
    this.kernel.exports.rankRemove(slot);
    this.#slots.delete(rankKey(workerId, dpRank));
    this.ranks[slot] = undefined;
    this.#freeSlots.push(slot);
    return true;
  }

  rank(workerId: string, dpRank: number): PoolRank | undefined {
    const slot = this.#slots.get(rankKey(workerId, dpRank));
    return slot === undefined ? undefined : this.ranks[slot];
  }

  /** Takes a rank out of every choice, or back in. */
  setOverloaded(rank: PoolRank, overloaded: boolean): void {
    rank.overloaded = overloaded;
    this.kernel.exports.rankFlags(rank.slot, overloaded ? 1 : 0);
  }

  /** The rank of each row, in row order: by worker id as u64, then rank. */
  *rows(): Generator<PoolRank> {
    const n = this.kernel.exports.rankCount();
    for (let row = 0; row < n; row++) yield this.ranks[this.kernel.exports.slotOf(row)]!;
  }

  // ---- decisions

  /** Selects and books. Throws the outcome when no rank may take the request; then nothing is changed. */
  select(request: PoolRequest): PoolSelection {
    const requestId = request.requestId ?? `warmroute-${this.#nextRequest++}`;
    if (this.bookings.has(requestId)) {
      throw new WarmrouteError("duplicate_request", `request ${describe(requestId)} has a live booking`, {
        details: { requestId },
      });
    }
    const constraints = readConstraints(request);
    const keep = request.explain === true;
    const config = this.#prepare(request, constraints, keep ? RequestFlag.book | RequestFlag.keep : RequestFlag.book);
    const { kernel } = this;
    try {
      const status = kernel.exports.decide();
      kernel.sync();
      if (status < 0) throw this.#refusal(status, request, constraints);
      const answer = kernel.answer;
      const doubles = kernel.answerDoubles;
      const rank = this.ranks[answer[0]!]!;
      const worker = { workerId: rank.workerId, dpRank: rank.dpRank };
      const overlap = {
        deviceBlocks: doubles[6]!,
        hostBlocks: doubles[7]!,
        diskBlocks: doubles[8]!,
        sharedBlocks: doubles[9]!,
      };
      const booking = new PoolBooking(
        this,
        {
          requestId,
          id: answer[4]!,
          generation: answer[5]!,
          slot: rank.slot,
          inputTokens: request.tokens.length,
          generated: 0,
          expectedOutputTokens: request.expectedOutputTokens ?? 0,
        },
        worker,
      );
      this.bookings.set(requestId, booking);
      this.decisions++;
      const tied = answer[2]!;
      return {
        requestId,
        worker,
        record: rank.record,
        overlap,
        cachedTokens: doubles[10]!,
        effectivePrefillTokens: doubles[11]!,
        evidence: this.#evidence(overlap),
        reason: this.#reason(request, config, answer),
        tieDraw: tied > 1 && !request.pinnedWorker ? answer[3]! : undefined,
        candidates: keep ? this.#candidates(request, constraints) : undefined,
        booking,
      };
    } finally {
      if (keep && !kernel.failed) kernel.exports.releaseColumns();
    }
  }

  /** The same answer as a value; books nothing and leaves the generator unmoved. */
  probe(request: PoolRequest): Explanation {
    const constraints = readConstraints(request);
    this.#prepare(request, constraints, RequestFlag.probe | RequestFlag.keep);
    return this.#explain(request, constraints, this.kernel.exports.decide());
  }

  /** A decision over columns that the caller has written; `promptTokens` stands for a prompt. */
  choose(request: Omit<PoolRequest, "tokens">, promptTokens: number): Explanation {
    const constraints = readConstraints(request);
    this.#prepare({ ...request, tokens: [0] }, constraints, RequestFlag.lower | RequestFlag.shared);
    this.kernel.requestDoubles[4] = promptTokens;
    return this.#explain({ ...request, tokens: [] }, constraints, this.kernel.exports.choose());
  }

  #explain(request: PoolRequest, constraints: Constraints | undefined, status: number): Explanation {
    const { kernel } = this;
    kernel.sync();
    try {
      const excluded = this.#excluded(request, constraints);
      if (status < 0) {
        const refusal = this.#refusal(status, request, constraints);
        if (status !== Status.noCandidate) throw refusal;
        return { outcome: refusal.code as Outcome, selected: null, candidates: [], excluded };
      }
      const rank = this.ranks[kernel.answer[0]!]!;
      return {
        outcome: "selected",
        selected: { workerId: rank.workerId, dpRank: rank.dpRank },
        candidates: this.#candidates(request, constraints),
        excluded,
      };
    } finally {
      if (!kernel.failed) kernel.exports.releaseColumns();
    }
  }

  /** Writes the prompt and the request row. Everything that can be refused is refused here, before any change. */
  #prepare(request: PoolRequest, constraints: Constraints | undefined, extra: number): KvRouterConfig {
    const { kernel } = this;
    const config =
      request.configOverride === undefined ? this.config : applyOverride(this.config, request.configOverride);
    const expected = request.expectedOutputTokens;
    if (expected !== undefined && !(expected >= 0 && Number.isFinite(expected))) {
      throw new WarmrouteError("invalid_request", "expectedOutputTokens must be a finite number of at least 0", {
        path: "expectedOutputTokens",
      });
    }
    const n = kernel.writeTokens(request.tokens);
    const seed = kernel.localSeed(request.loraName, request.cacheSalt);
    let pinned = -1;
    if (request.pinnedWorker) {
      const id = workerIdString(request.pinnedWorker.workerId, "pinnedWorker.workerId", "invalid_request");
      const rank = this.rank(id, parseU32(request.pinnedWorker.dpRank ?? 0, "pinnedWorker.dpRank"));
      const outcome = pinOutcome(id, rank, constraints);
      // The kernel refuses a slot beyond the last, so that a probe sees a forbidden pin as an outcome.
      pinned = outcome === "selected" ? rank!.slot : kernel.maxRanks;
    }
    let flags = extra;
    if (config.routerTrackPrefillTokens) flags |= RequestFlag.track;
    if (this.role === "decode") flags |= RequestFlag.decodeRole;
    if (!config.routerAssumeKvReuse) flags |= RequestFlag.privateBlocks;
    if (!config.routerTrackActiveBlocks) flags |= RequestFlag.noPromptBlocks;
    if (!this.usesIndex) flags |= RequestFlag.noIndex;
    if (constraints) flags |= this.#writeConstraints(constraints);
    kernel.setRequest(n, flags, pinned, policyNumber[this.policy], seed);
    const p = kernel.requestDoubles;
    p[PARAMS] = config.overlapScoreCredit;
    p[PARAMS + 1] = config.overlapScoreCreditDecay;
    p[PARAMS + 2] = config.prefillLoadScale;
    p[PARAMS + 3] = config.decodeActiveRequestWeight;
    p[PARAMS + 4] = config.hostCacheHitWeight;
    p[PARAMS + 5] = config.diskCacheHitWeight;
    p[PARAMS + 6] = config.sharedCacheMultiplier;
    p[PARAMS + 7] = config.routerTemperature;
    p[TWO_TIER] = this.twoTier.cacheThreshold;
    p[TWO_TIER + 1] = this.twoTier.balanceAbsThreshold;
    p[TWO_TIER + 2] = this.twoTier.balanceRelThreshold;
    return config;
  }

  #writeConstraints(constraints: Constraints): number {
    const { kernel } = this;
    const n = kernel.exports.rankCount();
    const mask = kernel.bytes(kernel.exports.column(Column.mask), n);
    const taint = constraints.preferred.length > 0 ? kernel.column(Column.taint) : undefined;
    let row = 0;
    for (const rank of this.rows()) {
      const exclusion = exclusionOf(rank, constraints);
      mask[row] = exclusion === undefined || exclusion === "overloaded" ? 0 : 1;
      if (taint) taint[row] = preferenceOf(rank, constraints);
      row++;
    }
    return RequestFlag.mask | (taint ? RequestFlag.taints : 0);
  }

  #refusal(status: number, request: PoolRequest, constraints: Constraints | undefined): WarmrouteError {
    if (status === Status.memoryBudget) return budgetError("another booking");
    if (request.pinnedWorker) {
      const id = workerIdString(request.pinnedWorker.workerId, "pinnedWorker.workerId");
      const outcome = pinOutcome(id, this.rank(id, request.pinnedWorker.dpRank ?? 0), constraints);
      return outcomeError(outcome === "selected" ? "no_endpoints" : outcome);
    }
    return outcomeError(emptyOutcome(this.rows(), constraints));
  }

  #evidence(overlap: Overlap): Evidence {
    if (overlap.deviceBlocks + overlap.hostBlocks + overlap.diskBlocks + overlap.sharedBlocks === 0) return "none";
    return this.config.useKvEvents ? "events" : "approximate";
  }

  #reason(request: PoolRequest, config: KvRouterConfig, answer: Uint32Array): Reason {
    if (request.pinnedWorker) return "pinned";
    if (answer[7] === 1) return "only_candidate";
    if (answer[8] === 1) return "no_signal";
    if (this.policy === "dynamo-default-cost-fn" && config.routerTemperature > 0) return "sampled";
    return answer[2]! > 1 ? "tie" : "cost";
  }

  #candidates(request: PoolRequest, constraints: Constraints | undefined): Candidate[] {
    const { kernel } = this;
    const pinned = request.pinnedWorker !== undefined;
    if (!pinned) kernel.exports.explainProbabilities();
    const costs = kernel.column(Column.cost);
    const probabilities = kernel.column(Column.probability);
    const scored = this.policy === "dynamo-default-cost-fn";
    const chosenRow = kernel.answer[1]!;
    const out: Candidate[] = [];
    let row = 0;
    for (const rank of this.rows()) {
      const eligible = pinned ? row === chosenRow : exclusionOf(rank, constraints) === undefined;
      if (eligible) {
        const terms = explainedTerms(this.policy, kernel, row);
        const cost = pinned ? kernel.answerDoubles[5]! : costs[row]!;
        out.push({
          workerId: rank.workerId,
          dpRank: rank.dpRank,
          ...(scored ? { cost } : {}),
          probability: pinned ? 1 : probabilities[row]!,
          terms,
        });
      }
      row++;
    }
    return out;
  }

  #excluded(request: PoolRequest, constraints: Constraints | undefined): Excluded[] {
    const out: Excluded[] = [];
    const pin = request.pinnedWorker;
    const pinnedId = pin && workerIdString(pin.workerId, "pinnedWorker.workerId");
    for (const rank of this.rows()) {
      const isPinned = rank.workerId === pinnedId && rank.dpRank === (pin?.dpRank ?? 0);
      const reason = exclusionOf(rank, constraints) ?? (pin && !isPinned ? "not_pinned" : undefined);
      if (reason) out.push({ workerId: rank.workerId, dpRank: rank.dpRank, reason });
    }
    return out;
  }

  // ---- bookings

  /** Books without a selection. Sequence hashes are checked; an unknown rank is `unknown_worker`. */
  reserve(
    requestId: string,
    rank: PoolRank,
    sequenceHashes: BigUint64Array | readonly U64Input[],
    islTokens: number,
    effectivePrefillTokens: number,
  ): PoolBooking {
    if (this.bookings.has(requestId)) {
      throw new WarmrouteError("duplicate_request", `request ${describe(requestId)} has a live booking`, {
        details: { requestId },
      });
    }
    const { kernel } = this;
    const n = sequenceHashes.length;
    const { names } = kernel.eventArea(n);
    if (sequenceHashes instanceof BigUint64Array) names.set(sequenceHashes);
    else for (let i = 0; i < n; i++) names[i] = parseU64(sequenceHashes[i], `sequenceHashes[${i}]`);
    const id = kernel.exports.reserve(rank.slot, n, effectivePrefillTokens);
    if (id === 0) throw budgetError("another booking");
    const worker = { workerId: rank.workerId, dpRank: rank.dpRank };
    const generation = kernel.exports.bookingGeneration(id);
    const state = {
      requestId,
      id,
      generation,
      slot: rank.slot,
      inputTokens: islTokens,
      generated: 0,
      expectedOutputTokens: 0,
    };
    const booking = new PoolBooking(this, state, worker);
    this.bookings.set(requestId, booking);
    return booking;
  }

  bookingPrefillComplete(booking: PoolBooking): void {
    this.kernel.exports.bookingPrefillComplete(booking.id, booking.generation);
  }

  bookingOutputBlock(booking: PoolBooking, fraction: number | undefined): void {
    if (fraction !== undefined && !(fraction >= 0 && fraction <= 1)) {
      throw new WarmrouteError("invalid_request", `decayFraction must be from 0 to 1, not ${describe(fraction)}`, {
        path: "decayFraction",
      });
    }
    const status = this.kernel.exports.bookingOutputBlock(booking.id, booking.generation, fraction ?? Number.NaN);
    if (status === Status.memoryBudget) throw budgetError("another output block");
  }

  bookingFree(booking: PoolBooking): void {
    this.bookings.delete(booking.requestId);
    if (!this.kernel.failed) this.kernel.exports.bookingFree(booking.id, booking.generation);
  }

  // ---- cache contents

  /**
   * Applies a store of `locals.length` blocks; `parent` is the engine's name of the block before, or null
   * for the start of a prompt. Returns why it was refused, or undefined.
   */
  store(
    rank: PoolRank,
    tier: StorageTier,
    parent: bigint | null,
    names: BigUint64Array,
    locals: BigUint64Array,
  ): string | undefined {
    if (!this.usesIndex) return "index_off";
    const { kernel } = this;
    const n = locals.length;
    const area = kernel.eventArea(n);
    area.names.set(names);
    area.locals.set(locals);
    const status = kernel.exports.storeEvent(
      rank.slot,
      tiers[tier],
      parent === null ? 0 : 1,
      BigInt.asIntN(64, parent ?? 0n),
      n,
    );
    if (status >= 0) return undefined;
    if (status === Status.orphan) this.orphans++;
    else this.refused++;
    return eventRefusal(status);
  }

  /** Removes blocks by name; unknown names are counted by the kernel. Returns how many were held. */
  remove(rank: PoolRank, tier: StorageTier, names: BigUint64Array): number {
    const { kernel } = this;
    kernel.eventArea(names.length).names.set(names);
    return kernel.exports.removeEvent(rank.slot, tiers[tier], names.length);
  }

  /** Forgets everything that a rank holds, in every tier. */
  clear(rank: PoolRank): void {
    this.kernel.exports.clearEvent(rank.slot);
  }

  /** Leading blocks of a prompt on each rank that holds any, in row order. */
  overlap(blocks: number): (WorkerRank & Omit<Overlap, "sharedBlocks">)[] {
    const { kernel } = this;
    kernel.exports.overlapOf(blocks);
    kernel.sync();
    const device = kernel.column(Column.device);
    const host = kernel.column(Column.host);
    const disk = kernel.column(Column.disk);
    const out: (WorkerRank & Omit<Overlap, "sharedBlocks">)[] = [];
    let row = 0;
    for (const rank of this.rows()) {
      if (device[row]! + host[row]! + disk[row]! > 0) {
        out.push({
          workerId: rank.workerId,
          dpRank: rank.dpRank,
          deviceBlocks: device[row]!,
          hostBlocks: host[row]!,
          diskBlocks: disk[row]!,
        });
      }
      row++;
    }
    kernel.exports.releaseColumns();
    return out;
  }

  /** Load of every rank, in row order. */
  loads(): (WorkerRank & { activePrefillTokens: number; activeDecodeBlocks: number; activeRequests: number })[] {
    const { kernel } = this;
    const prefill = kernel.column(Column.prefill);
    const decode = kernel.column(Column.decode);
    const requests = kernel.column(Column.requests);
    return Array.from(this.rows(), (rank, row) => ({
      workerId: rank.workerId,
      dpRank: rank.dpRank,
      activePrefillTokens: prefill[row]!,
      activeDecodeBlocks: decode[row]!,
      activeRequests: requests[row]!,
    }));
  }

  /**
   * Takes over a kernel with restored state: `slots` maps each rank's slot to its new one. With `taken`, the
   * live bookings become those of a snapshot (its slots mapped likewise); a handle of the same request goes on.
   */
  adopt(
    kernel: Kernel,
    slots: ReadonlyMap<number, number>,
    taken?: { bookings: readonly BookingState[]; slots: ReadonlyMap<number, number> },
  ): void {
    const ranks = [...this.rows()];
    this.kernel = kernel;
    this.ranks.length = 0;
    this.#slots.clear();
    for (const rank of ranks) {
      const slot = slots.get(rank.slot)!;
      this.ranks[slot] = { ...rank, slot };
      this.#slots.set(rankKey(rank.workerId, rank.dpRank), slot);
    }
    this.#freeSlots = [];
    for (let slot = 0; slot < this.ranks.length; slot++) if (!this.ranks[slot]) this.#freeSlots.push(slot);
    if (!taken) {
      for (const booking of this.bookings.values()) booking.slot = slots.get(booking.slot)!;
      return;
    }
    const before = new Map(this.bookings);
    for (const booking of before.values()) booking.live = false;
    this.bookings.clear();
    for (const state of taken.bookings) {
      const slot = taken.slots.get(state.slot);
      const rank = slot === undefined ? undefined : this.ranks[slot];
      if (!rank) continue;
      const worker = { workerId: rank.workerId, dpRank: rank.dpRank };
      const booking = before.get(state.requestId) ?? new PoolBooking(this, { ...state, slot: rank.slot }, worker);
      booking.resume({ ...state, slot: rank.slot }, worker);
      this.bookings.set(state.requestId, booking);
    }
  }

  /** A counter of the kernel (see `Counter`). */
  counter(which: (typeof Counter)[keyof typeof Counter]): number {
    return this.kernel.exports.counter(which);
  }
}

function rankKey(workerId: string, dpRank: number): string {
  return `${workerId}/${dpRank}`;
}
