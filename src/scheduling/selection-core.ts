import { type Clock, systemClock } from "../core/clock.js";
import type { KvRouterConfig } from "../core/config.js";
import { WarmrouteError } from "../core/errors.js";
import { disown, isPromise } from "../core/foreign.js";
import { consoleLogger, type Logger, quietLogger } from "../core/log.js";
import type { Evidence, Overlap, WorkerRank, WorkerRecord, WorkerRole } from "../core/types.js";
import { Answer, AnswerDouble, Column, type Counter, RequestDouble } from "../kernel/abi.js";
import type { Kernel } from "../kernel/kernel.js";
import { Status } from "../kernel/status.js";
import type { PolicyClass } from "../plugins/policy/contract.js";
import { WorkerInputs } from "../plugins/worker-selection/components.js";
import { KernelPolicy, type KernelProgram } from "../plugins/worker-selection/kernel-policy.js";
import type { WorkerSelectionPolicy } from "../plugins/worker-selection/policy.js";
import type { BookingState, PoolBooking } from "./bookings/booking.js";
import { RequestIds } from "./bookings/request-ids.js";
import { CacheContents } from "./cache-contents.js";
import { Decider } from "./decider.js";
import { refusalOf } from "./explain.js";
import { Lanes } from "./lanes.js";
import { Overload } from "./overload.js";
import { closePolicy } from "./policy/close-policy.js";
import type { Explanation, Pool, PoolRequest, PoolSelection } from "./pool.js";
import { PoolBookings } from "./pool-bookings.js";
import { PoolLoads } from "./pool-loads.js";
import type { PredictionState } from "./predictions/contract.js";
import { Predictions } from "./predictions/predictions.js";
import { type PrefillLoadModel, PrefillModel } from "./prefill-model.js";
import { PoolQueue } from "./queue/pool-queue.js";
import { type PoolRank, PoolRanks } from "./ranks.js";
import { RequestFlag } from "./request.js";
import { SessionAffinity } from "./sessions/affinity.js";

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
  /** Ends what is over on the router's clock, as leases are. Called before loads are read. */
  sweep?: () => void;
  prefillLoadModel?: PrefillLoadModel;
  /** The classes of the profile; requests of others may come too. */
  classes?: readonly PolicyClass[];
}

/** How often a waiting request looks whether something changed that nobody told (spec: scheduling.md §5.6). */
const recheckMs = 60_000;
/** The same where the load of a rank falls with time. */
const modelledRecheckMs = 100;

/**
 * One pool: the ranks of one role of one partition, their cache contents and their load.
 * Select → book → answer is one synchronous step that nothing interleaves.
 */
export class SelectionCore implements Pool {
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
  /** Where requests wait for a rank that has room. */
  readonly queue: PoolQueue;
  readonly lanes: Lanes;
  /** Where each session is; undefined unless the configuration asks for it. */
  readonly affinity: SessionAffinity | undefined;
  /** What ranks are believed to hold; undefined where only events say it. */
  readonly predictions: Predictions | undefined;
  readonly #requestIds: RequestIds;
  readonly #bookings: PoolBookings;
  readonly #decider: Decider;
  readonly #log: Logger;
  readonly #sweep: (() => void) | undefined;
  readonly #prefillModel: PrefillModel | undefined;
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
    this.#sweep = options.sweep;
    this.#prefillModel = options.prefillLoadModel && new PrefillModel(options.prefillLoadModel, this.#log);
    const { sessionAffinityTtlSecs: ttlSecs } = this.config;
    this.affinity = ttlSecs ? new SessionAffinity({ clock: this.clock, ttlMs: ttlSecs * 1000 }) : undefined;
    this.lanes = new Lanes(this);
    this.queue = new PoolQueue({
      pool: new PoolLoads(this),
      clock: this.clock,
      classes: options.classes ?? [],
      strictPriorityMaxWaitMs: this.config.strictPriorityMaxWaitSecs * 1000,
      recheckMs: options.prefillLoadModel ? modelledRecheckMs : recheckMs,
    });
    const listener = { roomAt: (slot: number) => this.queue.changed(slot) };
    this.#bookings = new PoolBookings(this, this.#requestIds, this.clock, listener, this.#prefillModel);
    this.program = options.policy instanceof KernelPolicy ? options.policy.program : undefined;
    this.#decider = new Decider(this);
    this.usesIndex = (this.#decider.inputs & WorkerInputs.CACHE) !== 0;
    const { useKvEvents, routerTtlSecs, routerPredictedTtlSecs } = this.config;
    const predictedSecs = useKvEvents ? routerPredictedTtlSecs : routerTtlSecs;
    if (this.usesIndex && predictedSecs !== undefined) {
      this.predictions = new Predictions(this, this.clock, predictedSecs * 1000);
    }
  }

  /** Adds one rank. Throws `too_many_ranks` or `memory_budget`. */
  addRank(record: WorkerRecord, dpRank: number): void {
    this.ranks.add(record, dpRank);
    this.queue.changed();
  }

  /** A rank goes on under another record of its worker. */
  updateRank(rank: PoolRank, record: WorkerRecord): void {
    this.ranks.update(rank, record);
    this.predictions?.resized(rank);
    this.queue.changed();
  }

  /** Removes one rank with its cache contents and its bookings. */
  removeRank(workerId: string, dpRank: number): void {
    this.kernel.assertFree();
    const rank = this.ranks.get(workerId, dpRank);
    if (!rank) return;
    for (const booking of this.#bookings.of(rank)) booking.abort(workerGone("was removed"));
    this.contents.clear(rank);
    this.ranks.remove(rank);
    this.affinity?.rankGone(rank);
    this.#slotReleased(rank.slot);
    this.queue.changed();
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
    for (const booking of this.#bookings.of(rank)) booking.abort(workerGone("started anew"));
    this.contents.clear(rank);
  }

  /** Brings what depends on time up to date, before loads are read. */
  refresh(): void {
    if (this.kernel.isHeld || this.kernel.failed) return;
    this.#sweep?.();
    if (this.#prefillModel) this.kernel.exports.prefillClock(this.clock.now());
    this.predictions?.expire();
    this.overload.refresh();
  }

  // ---- decisions

  /**
   * Selects and books. Throws the outcome when no rank may take the request, or what a component of the policy did
   * wrong; then nothing is changed.
   */
  select(request: PoolRequest): PoolSelection {
    this.refresh();
    const requestId = this.#requestIds.claim(request.requestId);
    const keep = request.explain === true;
    const flags = this.predictions ? RequestFlag.book | RequestFlag.predict : RequestFlag.book;
    const asked = this.#decider.ask(request, flags, keep);
    const { kernel } = this;
    try {
      let status = this.#decider.decideAndBook(asked);
      if (status === Status.memoryBudget && this.predictions?.makeRoom()) status = this.#decider.decideAndBook(asked);
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
      const [id, generation] = [answer[Answer.booking]!, answer[Answer.generation]!];
      const booking = this.#bookings.booked(requestId, rank, id, generation, request.tokens.length, expected);
      const charged = answerDoubles[AnswerDouble.charged]!;
      this.#bookings.modelPrefill(booking, charged);
      this.decisions++;
      const selection = {
        requestId,
        worker: rank.name,
        record: rank.record,
        overlap,
        cachedTokens: answerDoubles[AnswerDouble.cached]!,
        effectivePrefillTokens: charged,
        evidence: this.#evidence(overlap, request.tokensExact !== false),
        reason: this.#decider.reason(asked),
        tieDraw: answer[Answer.tied]! > 1 ? answer[Answer.tieIndex]! : undefined,
        candidates: asked.candidates,
        booking,
      };
      this.predictions?.follow(booking, answer[Answer.blocks]!);
      return selection;
    } finally {
      if (keep) this.#decider.release();
    }
  }

  /**
   * The same answer as a value; books nothing and leaves the generator unmoved. The policy's components run as for
   * a selection, so what they keep for themselves sees probes too.
   */
  probe(request: PoolRequest): Explanation {
    this.refresh();
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

  #evidence(overlap: Overlap, tokensExact: boolean): Evidence {
    if (overlap.deviceBlocks + overlap.hostBlocks + overlap.diskBlocks + overlap.sharedBlocks === 0) return "none";
    if (!this.config.useKvEvents || !tokensExact) return "approximate";
    return this.kernel.answer[Answer.isPredicted] ? "predicted" : "events";
  }

  // ---- bookings

  /** The pool's live bookings, made into a list. */
  get bookings(): PoolBooking[] {
    return this.#bookings.list();
  }

  /** Books without a selection. Throws `duplicate_request`, `invalid_request` or `memory_budget`. */
  reserve(...booked: Parameters<PoolBookings["reserve"]>): PoolBooking {
    return this.#bookings.reserve(...booked);
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
    taken?: {
      bookings: readonly BookingState[];
      predictions: readonly PredictionState[];
      slots: ReadonlyMap<number, number>;
    },
  ): void {
    this.kernel.assertFree();
    this.ranks.move(kernel, slots);
    this.kernel = kernel;
    if (taken) {
      this.predictions?.forget();
      this.#bookings.adopt(taken.bookings, taken.slots);
      this.predictions?.adopt(taken.predictions, taken.slots, (requestId) => this.#requestIds.get(requestId));
    } else {
      this.predictions?.moved(slots);
      this.#bookings.moved(slots);
    }
    for (const [before, now] of slots) if (before !== now) this.#slotReleased(before);
    this.queue.changed();
  }

  /** Answers every waiting request with this error, and ends every live one. */
  end(error: WarmrouteError): void {
    this.queue.close(error);
    for (const booking of this.bookings) booking.abort(error);
  }

  /** Closes the policy, once; the pool must not be used any more. Never rejects: what the policy throws is logged. */
  close(): Promise<void> {
    this.#closed ??= closePolicy(this.policy, this.#log);
    return this.#closed;
  }
}

/** Why a request was aborted that its caller did not end. */
const workerGone = (what: string) => new WarmrouteError("unknown_worker", `the worker of this request ${what}`);
