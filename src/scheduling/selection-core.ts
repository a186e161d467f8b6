import { type Clock, systemClock } from "../core/clock.js";
import type { KvRouterConfig } from "../core/config.js";
import { WarmrouteError } from "../core/errors.js";
import { disown, isPromise } from "../core/foreign.js";
import { describe, parseU64, type U64Input } from "../core/ids.js";
import { consoleLogger, type Logger, quietLogger } from "../core/log.js";
import type { Evidence, Overlap, WorkerRank, WorkerRecord, WorkerRole } from "../core/types.js";
import { Answer, AnswerDouble, Column, type Counter, RequestDouble } from "../kernel/abi.js";
import { budgetError, type Kernel } from "../kernel/kernel.js";
import { WorkerInputs } from "../plugins/worker-selection/components.js";
import { KernelPolicy, type KernelProgram } from "../plugins/worker-selection/kernel-policy.js";
import type { WorkerSelectionPolicy } from "../plugins/worker-selection/policy.js";
import { type BookingOwner, type BookingState, PoolBooking } from "./booking.js";
import { CacheContents } from "./cache-contents.js";
import { closePolicy } from "./close-policy.js";
import { Decider } from "./decider.js";
import { refusalOf } from "./explain.js";
import { Overload } from "./overload.js";
import type { Explanation, Pool, PoolRequest, PoolSelection } from "./pool.js";
import { type PoolRank, PoolRanks } from "./ranks.js";
import { RequestFlag } from "./request.js";
import { RequestIds } from "./request-ids.js";

export interface SelectionCoreOptions {
  kernel: Kernel;
  config: KvRouterConfig;
  role: WorkerRole;
  policy: WorkerSelectionPolicy;
  /** Shared by the pools of a router, so that an id is live once. */
  requestIds?: RequestIds;
  /** The console unless given. */
  log?: Logger;
  clock?: Clock;
}

/**
 * One pool: the ranks of one role of one partition, their cache contents and their load.
 * Select → book → answer is one synchronous step that nothing interleaves.
 */
export class SelectionCore implements Pool, BookingOwner {
  kernel: Kernel;
  readonly config: KvRouterConfig;
  readonly blockSize: number;
  readonly policy: WorkerSelectionPolicy;
  readonly program: KernelProgram | undefined;
  readonly usesIndex: boolean;
  readonly role: WorkerRole;
  readonly ranks: PoolRanks;
  readonly contents: CacheContents;
  readonly overload: Overload;
  readonly clock: Clock;
  unitsPerToken = 1;
  decisions = 0;
  /** Hears that a rank's load fell (its slot), or that anything changed for which requests may wait. */
  onRoom: ((slot?: number) => void) | undefined;
  readonly #requestIds: RequestIds;
  readonly #decider: Decider;
  readonly #log: Logger;
  #closed: Promise<void> | undefined;

  /** Throws `invalid_plugin` for a component that is none. */
  constructor(options: SelectionCoreOptions) {
    this.kernel = options.kernel;
    this.config = options.config;
    this.blockSize = options.kernel.blockSize;
    this.role = options.role;
    this.policy = options.policy;
    this.#requestIds = options.requestIds ?? new RequestIds();
    this.#log = quietLogger(options.log ?? consoleLogger);
    this.ranks = new PoolRanks(options.kernel);
    this.contents = new CacheContents(this);
    this.clock = options.clock ?? systemClock;
    this.overload = new Overload(this);
    this.program = options.policy instanceof KernelPolicy ? options.policy.program : undefined;
    this.#decider = new Decider(this);
    this.usesIndex = (this.#decider.inputs & WorkerInputs.CACHE) !== 0;
  }

  /** The pool's live bookings, made into a list. */
  get bookings(): PoolBooking[] {
    return this.#requestIds.of(this);
  }

  nowMs(): number {
    return this.clock.now();
  }

  get tracksOutputBlocks(): boolean {
    return this.config.routerTrackOutputBlocks;
  }

  /** Adds one rank. Throws `too_many_ranks` or `memory_budget`. */
  addRank(record: WorkerRecord, dpRank: number): void {
    this.ranks.add(record, dpRank);
    this.onRoom?.();
  }

  /** A rank goes on under another record of its worker. */
  updateRank(rank: PoolRank, record: WorkerRecord): void {
    this.ranks.update(rank, record);
    this.onRoom?.();
  }

  /** Removes one rank with its cache contents and its bookings. */
  removeRank(workerId: string, dpRank: number): void {
    this.kernel.assertFree();
    const rank = this.ranks.get(workerId, dpRank);
    if (!rank) return;
    for (const booking of this.#bookingsOf(rank)) booking.abort(workerGone("was removed"));
    this.ranks.remove(rank);
    this.#slotReleased(rank.slot);
    this.onRoom?.();
  }

  /** Tells the policy that a slot means nothing any more, or soon another rank. */
  #slotReleased(slot: number): void {
    const failed = (error: unknown) =>
      this.#log.error("a worker-selection policy failed in onSlotReleased", { policy: this.policy.label, slot, error });
    try {
      const answer: unknown = this.policy.onSlotReleased?.(slot);
      if (isPromise(answer)) disown(answer, failed);
    } catch (error) {
      failed(error);
    }
  }

  /** The process behind a rank started anew: what it held and what it worked on is gone. */
  restartRank(rank: PoolRank): void {
    this.contents.clear(rank);
    for (const booking of this.#bookingsOf(rank)) booking.abort(workerGone("started anew"));
  }

  #bookingsOf(rank: PoolRank): PoolBooking[] {
    return this.bookings.filter((booking) => booking.slot === rank.slot);
  }

  // ---- decisions

  /**
   * Selects and books. Throws the outcome when no rank may take the request, or what a component of the policy did
   * wrong; then nothing is changed.
   */
  select(request: PoolRequest): PoolSelection {
    const requestId = this.#requestIds.claim(request.requestId);
    this.overload.refresh();
    const keep = request.explain === true;
    const asked = this.#decider.ask(request, RequestFlag.book, keep);
    const { kernel } = this;
    try {
      const status = this.#decider.decide(asked);
      if (status < 0) throw refusalOf(this, status, asked.constraints, asked.binding);
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
        reason: this.#decider.reason(asked),
        tieDraw: answer[Answer.tied]! > 1 ? answer[Answer.tieIndex]! : undefined,
        candidates: keep ? this.#decider.candidates(asked) : undefined,
        booking,
      };
    } finally {
      if (keep) this.#decider.release();
    }
  }

  /**
   * The same answer as a value; books nothing and leaves the generator unmoved. The policy's components run as for
   * a selection, so what they keep for themselves sees probes too.
   */
  probe(request: PoolRequest): Explanation {
    this.overload.refresh();
    const asked = this.#decider.ask(request, RequestFlag.probe, true);
    return this.#decider.explained(asked, this.#decider.decide(asked));
  }

  /**
   * A decision of a policy inside the kernel over columns that the caller has written; `promptTokens` stands for a
   * prompt.
   */
  choose(request: Omit<PoolRequest, "tokens">, promptTokens: number): Explanation {
    const asked = this.#decider.ask({ ...request, tokens: [0] }, RequestFlag.lower | RequestFlag.shared, true);
    this.kernel.requestDoubles[RequestDouble.promptTokens] = promptTokens;
    return this.#decider.explained(asked, this.kernel.exports.choose());
  }

  #evidence(overlap: Overlap): Evidence {
    if (overlap.deviceBlocks + overlap.hostBlocks + overlap.diskBlocks + overlap.sharedBlocks === 0) return "none";
    return this.config.useKvEvents ? "events" : "approximate";
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

  // A booking's verbs are never refused: while components of the policy run they wait for the end of the decision.

  bookingPrefillComplete(booking: PoolBooking): void {
    const { kernel } = this;
    if (kernel.isHeld) {
      kernel.postpone(() => this.bookingPrefillComplete(booking));
      return;
    }
    kernel.exports.bookingPrefillComplete(booking.id, booking.generation);
    this.onRoom?.(booking.slot);
  }

  bookingOutputBlocks(booking: PoolBooking, more: number, fraction: number | undefined): void {
    if (fraction !== undefined && !(fraction >= 0 && fraction <= 1)) {
      throw new WarmrouteError("invalid_request", `decayFraction must be from 0 to 1, not ${describe(fraction)}`, {
        path: "decayFraction",
      });
    }
    const { kernel } = this;
    if (kernel.isHeld) kernel.postpone(() => this.bookingOutputBlocks(booking, more, fraction));
    else kernel.exports.bookingOutputBlocks(booking.id, booking.generation, more, fraction ?? Number.NaN);
  }

  bookingFree(booking: PoolBooking): void {
    const { kernel } = this;
    this.#forget(booking);
    if (kernel.isHeld) kernel.postpone(() => kernel.exports.bookingFree(booking.id, booking.generation));
    else if (!kernel.failed) kernel.exports.bookingFree(booking.id, booking.generation);
    this.onRoom?.(booking.slot);
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
    this.kernel.assertFree();
    this.ranks.move(kernel, slots);
    this.kernel = kernel;
    if (taken) this.#adoptBookings(taken);
    else for (const booking of this.bookings) booking.slot = slots.get(booking.slot)!;
    for (const [before, now] of slots) if (before !== now) this.#slotReleased(before);
    this.onRoom?.();
  }

  #adoptBookings(taken: { bookings: readonly BookingState[]; slots: ReadonlyMap<number, number> }): void {
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
    for (const booking of before.values()) if (!booking.live) booking.lost(workerGone("has another state now"));
  }

  /** Closes the policy, once; the pool must not be used any more. Never rejects: what the policy throws is logged. */
  close(): Promise<void> {
    this.#closed ??= closePolicy(this.policy, this.#log);
    return this.#closed;
  }
}

/** Why a request was aborted that its caller did not end. */
const workerGone = (what: string) => new WarmrouteError("unknown_worker", `the worker of this request ${what}`);
