import type { KvRouterConfig } from "../core/config.js";
import { WarmrouteError } from "../core/errors.js";
import { describe, parseU64, type U64Input } from "../core/ids.js";
import type { Evidence, Overlap, Reason, WorkerRank, WorkerRecord, WorkerRole } from "../core/types.js";
import { Answer, AnswerDouble, Column, type Counter } from "../kernel/abi.js";
import { budgetError, type Kernel } from "../kernel/kernel.js";
import { type BookingOwner, type BookingState, PoolBooking } from "./booking.js";
import type { BuiltInPolicy, TwoTierParameters } from "./built-in.js";
import { CacheContents } from "./cache-contents.js";
import { readConstraints } from "./eligibility.js";
import { candidatesOf, explainDecision, refusalOf } from "./explain.js";
import type { Explanation, Pool, PoolRequest, PoolSelection } from "./pool.js";
import { type PoolRank, PoolRanks } from "./ranks.js";
import { RequestDouble, RequestFlag, writeRequest } from "./request.js";
import { RequestIds } from "./request-ids.js";

export interface SelectionCoreOptions {
  kernel: Kernel;
  config: KvRouterConfig;
  role: WorkerRole;
  /** Shared by the pools of a router, so that an id is live once. */
  requestIds?: RequestIds;
  policy?: BuiltInPolicy;
  twoTier?: TwoTierParameters;
}

/**
 * One pool: the ranks of one role of one partition, their cache contents and their load.
 * Select → book → answer is one synchronous step that nothing interleaves.
 */
export class SelectionCore implements Pool, BookingOwner {
  kernel: Kernel;
  readonly config: KvRouterConfig;
  readonly blockSize: number;
  readonly policy: BuiltInPolicy;
  readonly twoTier: TwoTierParameters;
  readonly role: WorkerRole;
  readonly ranks: PoolRanks;
  readonly contents: CacheContents;
  decisions = 0;
  readonly #requestIds: RequestIds;

  constructor(options: SelectionCoreOptions) {
    this.kernel = options.kernel;
    this.config = options.config;
    this.blockSize = options.kernel.blockSize;
    this.role = options.role;
    this.policy = options.policy ?? "dynamo-default-cost-fn";
    this.twoTier = options.twoTier ?? { cacheThreshold: 0.5, balanceAbsThreshold: 32, balanceRelThreshold: 1.1 };
    this.#requestIds = options.requestIds ?? new RequestIds();
    this.ranks = new PoolRanks(options.kernel);
    this.contents = new CacheContents(this);
  }

  /** The pool's live bookings, made into a list. */
  get bookings(): PoolBooking[] {
    return this.#requestIds.of(this);
  }

  get tracksOutputBlocks(): boolean {
    return this.config.routerTrackOutputBlocks;
  }

  /** Adds one rank. Throws `too_many_ranks` or `memory_budget`. */
  addRank(record: WorkerRecord, dpRank: number): void {
    this.ranks.add(record, dpRank);
  }

  /** Removes one rank with its cache contents and its bookings. */
  removeRank(workerId: string, dpRank: number): void {
    const rank = this.ranks.get(workerId, dpRank);
    if (!rank) return;
    for (const booking of this.#bookingsOf(rank)) this.#forget(booking);
    this.ranks.remove(rank);
  }

  /** The process behind a rank started anew: what it held and what it worked on is gone. */
  restartRank(rank: PoolRank): void {
    this.contents.clear(rank);
    for (const booking of this.#bookingsOf(rank)) booking.free();
  }

  #bookingsOf(rank: PoolRank): PoolBooking[] {
    return this.bookings.filter((booking) => booking.slot === rank.slot);
  }

  // ---- decisions

  /** Selects and books. Throws the outcome when no rank may take the request; then nothing is changed. */
  select(request: PoolRequest): PoolSelection {
    const requestId = this.#requestIds.claim(request.requestId);
    const constraints = readConstraints(request);
    const keep = request.explain === true;
    const flags = keep ? RequestFlag.book | RequestFlag.keep : RequestFlag.book;
    const config = writeRequest(this, request, constraints, flags);
    const { kernel } = this;
    try {
      const status = kernel.exports.decide();
      kernel.sync();
      if (status < 0) throw refusalOf(this, status, request, constraints);
      const { answer, answerDoubles } = kernel;
      const rank = this.ranks.at(answer[Answer.slot]!);
      const overlap = {
        deviceBlocks: answerDoubles[AnswerDouble.device]!,
        hostBlocks: answerDoubles[AnswerDouble.host]!,
        diskBlocks: answerDoubles[AnswerDouble.disk]!,
        sharedBlocks: answerDoubles[AnswerDouble.shared]!,
      };
      const expected = request.expectedOutputTokens ?? 0;
      const booking = this.#booked(
        requestId,
        rank,
        answer[Answer.booking]!,
        answer[Answer.generation]!,
        request.tokens.length,
        expected,
      );
      this.decisions++;
      return {
        requestId,
        worker: rank.name,
        record: rank.record,
        overlap,
        cachedTokens: answerDoubles[AnswerDouble.cached]!,
        effectivePrefillTokens: answerDoubles[AnswerDouble.charged]!,
        evidence: this.#evidence(overlap),
        reason: this.#reason(request, config, answer),
        tieDraw: answer[Answer.tied]! > 1 ? answer[Answer.tieIndex]! : undefined,
        candidates: keep ? candidatesOf(this, request, constraints) : undefined,
        booking,
      };
    } finally {
      if (keep && !kernel.failed) kernel.exports.releaseColumns();
    }
  }

  /** The same answer as a value; books nothing and leaves the generator unmoved. */
  probe(request: PoolRequest): Explanation {
    const constraints = readConstraints(request);
    writeRequest(this, request, constraints, RequestFlag.probe | RequestFlag.keep);
    return explainDecision(this, this.kernel.exports.decide(), request, constraints);
  }

  /** A decision over columns that the caller has written; `promptTokens` stands for a prompt. */
  choose(request: Omit<PoolRequest, "tokens">, promptTokens: number): Explanation {
    const constraints = readConstraints(request);
    writeRequest(this, { ...request, tokens: [0] }, constraints, RequestFlag.lower | RequestFlag.shared);
    this.kernel.requestDoubles[RequestDouble.promptTokens] = promptTokens;
    return explainDecision(this, this.kernel.exports.choose(), request, constraints);
  }

  #evidence(overlap: Overlap): Evidence {
    if (overlap.deviceBlocks + overlap.hostBlocks + overlap.diskBlocks + overlap.sharedBlocks === 0) return "none";
    return this.config.useKvEvents ? "events" : "approximate";
  }

  #reason(request: PoolRequest, config: KvRouterConfig, answer: Uint32Array): Reason {
    if (request.pinnedWorker) return "pinned";
    if (answer[Answer.candidates] === 1) return "only_candidate";
    if (answer[Answer.noSignal] === 1) return "no_signal";
    if (this.policy === "dynamo-default-cost-fn" && config.routerTemperature > 0) return "sampled";
    return answer[Answer.tied]! > 1 ? "tie" : "cost";
  }

  // ---- bookings

  #booked(requestId: string, rank: PoolRank, id: number, generation: number, isl: number, osl: number): PoolBooking {
    const booking = new PoolBooking(this, requestId, rank.name, rank.slot, id, generation, isl, osl);
    this.#requestIds.set(booking);
    return booking;
  }

  #forget(booking: PoolBooking): void {
    booking.live = false;
    this.#requestIds.delete(booking);
  }

  /** Books without a selection. Throws `duplicate_request`, `invalid_request` or `memory_budget`. */
  reserve(
    requestId: string,
    rank: PoolRank,
    sequenceHashes: BigUint64Array | readonly U64Input[],
    islTokens: number,
    effectivePrefillTokens: number,
  ): PoolBooking {
    this.#requestIds.claim(requestId);
    const { kernel } = this;
    const n = sequenceHashes.length;
    const { names } = kernel.roomForEvent(n);
    if (sequenceHashes instanceof BigUint64Array) names.set(sequenceHashes);
    else for (let i = 0; i < n; i++) names[i] = parseU64(sequenceHashes[i], `sequenceHashes[${i}]`);
    const id = kernel.exports.reserve(rank.slot, n, effectivePrefillTokens);
    if (id === 0) throw budgetError("another booking");
    return this.#booked(requestId, rank, id, kernel.exports.bookingGeneration(id), islTokens, 0);
  }

  bookingPrefillComplete(booking: PoolBooking): void {
    this.kernel.exports.bookingPrefillComplete(booking.id, booking.generation);
  }

  bookingOutputBlocks(booking: PoolBooking, more: number, fraction: number | undefined): void {
    if (fraction !== undefined && !(fraction >= 0 && fraction <= 1)) {
      throw new WarmrouteError("invalid_request", `decayFraction must be from 0 to 1, not ${describe(fraction)}`, {
        path: "decayFraction",
      });
    }
    this.kernel.exports.bookingOutputBlocks(booking.id, booking.generation, more, fraction ?? Number.NaN);
  }

  bookingFree(booking: PoolBooking): void {
    this.#forget(booking);
    if (!this.kernel.failed) this.kernel.exports.bookingFree(booking.id, booking.generation);
  }

  // ---- state

  /** Load of every rank, in row order. */
  loads(): (WorkerRank & { activePrefillTokens: number; activeDecodeBlocks: number; activeRequests: number })[] {
    const { kernel } = this;
    const prefill = kernel.column(Column.prefill);
    const decode = kernel.column(Column.decode);
    const requests = kernel.column(Column.requests);
    return Array.from(this.ranks, ({ workerId, dpRank }, row) => ({
      workerId,
      dpRank,
      activePrefillTokens: prefill[row]!,
      activeDecodeBlocks: decode[row]!,
      activeRequests: requests[row]!,
    }));
  }

  /** A counter of the kernel (see `Counter`). */
  counter(which: (typeof Counter)[keyof typeof Counter]): number {
    return this.kernel.exports.counter(which);
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
    this.ranks.move(kernel, slots);
    this.kernel = kernel;
    if (!taken) {
      for (const booking of this.bookings) booking.slot = slots.get(booking.slot)!;
      return;
    }
    const before = new Map(this.bookings.map((booking) => [booking.requestId, booking]));
    for (const booking of before.values()) this.#forget(booking);
    for (const state of taken.bookings) {
      const slot = taken.slots.get(state.slot);
      if (slot === undefined) continue;
      const rank = this.ranks.at(slot);
      const { requestId, id, generation, inputTokens, expectedOutputTokens } = state;
      const old = before.get(requestId);
      if (old) this.#requestIds.set(old);
      const booking = old ?? this.#booked(requestId, rank, id, generation, inputTokens, expectedOutputTokens);
      booking.resume({ ...state, slot }, rank.name);
    }
  }
}
