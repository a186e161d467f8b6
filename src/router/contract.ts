/// <reference lib="esnext.disposable" preserve="true" />
// What a router offers, as a library user calls it (the names and shapes are the public contract).

import type { Clock } from "../core/clock.js";
import type { ConfigOverride, KvRouterConfig } from "../core/config.js";
import type { U64Input } from "../core/ids.js";
import type { Logger } from "../core/log.js";
import type { Tokenizer } from "../core/prompt.js";
import type {
  Candidate,
  Evidence,
  Excluded,
  Outcome,
  Overlap,
  Reason,
  SessionContext,
  WorkerInput,
  WorkerRank,
  WorkerRankInput,
  WorkerRecord,
  WorkerRole,
} from "../core/types.js";
import type { Fetch, TrackOptions } from "../dispatch/index.js";
import type { RouterPlugins } from "../plugins/bundle.js";
import type { RouterPolicy } from "../plugins/policy/contract.js";
import type { Usage } from "../scheduling/bookings/booking.js";
import type { ClassifierStats } from "../scheduling/classifier/runner.js";
import type { BusyThresholds } from "../scheduling/overload.js";
import type { PredictionStats } from "../scheduling/predictions/contract.js";
import type { PrefillLoadModel } from "../scheduling/prefill-model.js";
import type { QueueStats } from "../scheduling/queue/contract.js";
import type { WorkerOrRank } from "./availability.js";
import type { EntryPointName } from "./entry-points.js";

export type { BusyThresholds, PrefillLoadModel, TrackOptions, WorkerOrRank };

export interface RouterOptions {
  /** Name of the model; part of the pool's seed. */
  model?: string;
  /** Tokens a block; 64 unless given. */
  blockSize?: number;
  /** Seed of all random choices; from the runtime's secure generator unless given. */
  seed?: U64Input;
  config?: Partial<KvRouterConfig>;
  workers?: readonly WorkerInput[];
  /** `engine`: ranks name blocks in their own way. `sequence`: names are sequence hashes; saves 8 bytes a block. */
  blockNames?: "engine" | "sequence";
  /** Bytes of linear memory for one pool; 1 GiB unless given. */
  memoryBudgetBytes?: number;
  /** Ranks a pool may have; 16384 unless given, which is also the most. */
  maxRanks?: number;
  clock?: Clock;
  /** What `registry.resolvePlugins(policy)` returned. It carries the policy file's queue profiles too. */
  plugins?: RouterPlugins;
  /** A policy file for a router without a catalog: built-in types only. Not beside `plugins`. */
  policy?: RouterPolicy;
  /** What plugins may know of a request beyond its prompt; at most 16 keys of at most 128 bytes, values likewise. */
  attributes?: (source: AttributeSource) => Readonly<Record<string, string | undefined>>;
  /** Gives a classification up after this many milliseconds (`classify_timeout`); never unless given. */
  classifyTimeoutMs?: number;
  /** Most classifications at once (`classify_pending_limit`); any number unless given. */
  maxPending?: number;
  /** Lets a classifier set strict priorities and jumps; false unless given. */
  allowPriority?: boolean;
  /** How long a prefill takes, so that its load falls as time passes; it counts whole until it completes unless given. */
  prefillLoadModel?: PrefillLoadModel;
  /** How many decisions `router.decisions()` keeps: 256 for true, none unless given. */
  decisionLog?: boolean | number;
  /** For `route`, `generate` and `fetch`: bytes of the canonical prompt unless given. */
  tokenizer?: Tokenizer;
  /** For `generate` and `fetch`: sends requests to workers; the runtime's own `fetch` unless given. */
  fetch?: Fetch;
  log?: Logger;
}

/** Where attributes come from. */
export interface AttributeSource {
  headers: Headers;
  /** The parsed body of an OpenAI request; what `select` was given, or undefined. */
  body: unknown;
  /** What the host knows of the caller; passed through as it is. */
  auth: unknown;
}

/** What goes with a request without being part of it; all but the signal is for `attributes`. */
export interface CallOptions {
  signal?: AbortSignal;
  headers?: HeadersInit;
  auth?: unknown;
  body?: unknown;
}

export interface RouteOptions extends Omit<CallOptions, "body"> {
  /** `/v1/chat/completions` or `/v1/completions`; told by the body unless given. */
  path?: string;
}

export interface RoutingConstraints {
  requiredTaints?: readonly string[];
  /** Weight of each taint: positive attracts, negative repels. */
  preferredTaints?: Readonly<Record<string, number>>;
}

export interface SelectRequest {
  requestId?: string;
  tokens: Uint32Array | readonly number[];
  /** false: they are not the engine's own ids, so that every overlap is an estimate (evidence `approximate`). */
  tokensExact?: boolean;
  /**
   * How many of them stand for one token of the engine, from this request on: figures of the engine, as `totalKvBlocks`,
   * count so many times. 1 unless given once.
   */
  unitsPerToken?: number;
  routingGroup?: string;
  loraName?: string;
  cacheSalt?: string;
  expectedOutputTokens?: number;
  pinnedWorker?: WorkerRankInput;
  allowedWorkerIds?: readonly U64Input[];
  routingConstraints?: RoutingConstraints;
  configOverride?: ConfigOverride;
  /** Which pool of the routing group decides; aggregated unless given. */
  role?: WorkerRole;
  /** Seconds that the request may go ahead of others. */
  priorityJump?: number;
  /** Larger goes first. */
  strictPriority?: number;
  /** A class or family of the policy file. */
  policyClass?: string;
  /** Short for `sessionContext: { sessionId }`. */
  sessionId?: string;
  sessionContext?: SessionContext;
  /** Where the session's state is: decides under an exclusive policy, else advice. */
  affinityTarget?: WorkerRankInput;
  /** false: the classifier is bypassed and sees no events. */
  lifecycle?: boolean;
  explain?: boolean;
}

/** What a probe answers: the shape of `warmroute explain`, in camelCase. It books nothing. */
export interface ProbeResult {
  outcome: Outcome;
  selected: WorkerRank | null;
  candidates: Candidate[];
  excluded: Excluded[];
}

/**
 * The load charged to a rank for one request, from selection until free. Verbs of an ended booking do nothing. Keep the
 * object that you were given: a booking whose object is collected while it is live is freed, and counted as forgotten.
 */
export interface Booking extends Disposable {
  readonly requestId: string;
  readonly worker: WorkerRank;
  /** The request was sent to the worker. */
  sent(): void;
  /** The first token arrived: prefill is complete. */
  firstToken(): void;
  /** `n` more tokens were generated. */
  tokens(n: number): void;
  /** `usage` as the engine's answer has it; its total tells the classifier the request's length. */
  complete(usage?: Usage | null): void;
  /** The request is alive, though nothing else says so: its lease starts anew. */
  renew(): void;
  abort(error?: unknown): void;
  prefillComplete(): void;
  /** Charges one output block; `decayFraction` in 0…1 re-weighs the blocks only this request holds. */
  outputBlock(decayFraction?: number): void;
  free(): void;
}

export interface Selection {
  readonly requestId: string;
  readonly worker: WorkerRank;
  /** The worker as it was added: its url, engine, ranks and labels. */
  readonly record: WorkerRecord;
  readonly url?: string;
  readonly overlap: Overlap;
  /** Prompt tokens that the rank's tiers save, weighted by tier. */
  readonly cachedTokens: number;
  /** Prompt tokens charged to the rank until prefill completes. */
  readonly effectivePrefillTokens: number;
  readonly evidence: Evidence;
  readonly reason: Reason;
  readonly policy: string;
  readonly policyClass: string;
  readonly queueWaitMs: number;
  /** Which of the tied ranks was taken, in row order; absent without a tie. */
  readonly tieDraw?: number;
  /** Every eligible rank with its terms; only with `explain: true`. */
  readonly candidates?: Candidate[];
  /** What to send where; only from `route`. */
  readonly dispatch?: { readonly url: string; readonly init: RequestInit };
  readonly booking: Booking;
  /**
   * Selects again for the same logical request, after a dispatch that failed: the booking is freed, the classifier
   * is not asked again, and its overrides hold. Rejects with `lifecycle_ended` once the booking has ended.
   */
  retry(options?: { signal?: AbortSignal }): Promise<Selection>;
  /** Follows the response of a dispatch: first byte, end, error or cancel, and frees the booking exactly once. */
  track(response: Response | Promise<Response>, options?: TrackOptions): Promise<Response>;
}

/** What the decision log keeps: a selection, or a request that got no worker (then `outcome` is the error's code). */
export interface Decision {
  /** On the router's clock. */
  readonly atMs: number;
  readonly requestId?: string;
  readonly outcome: string;
  /** Absent without a worker. */
  readonly selected?: Omit<Selection, "requestId" | "record" | "url" | "dispatch" | "booking" | "retry" | "track">;
}

export interface LoadRow extends WorkerRank {
  activePrefillTokens: number;
  activeDecodeBlocks: number;
  activeRequests: number;
}

/** A prompt by its tokens, or by the local hashes of its blocks. */
export type OverlapPrompt =
  | { tokens: Uint32Array | readonly number[]; loraName?: string; cacheSalt?: string }
  | { blockHashes: BigUint64Array | readonly U64Input[] };

export interface OverlapRow extends WorkerRank {
  deviceBlocks: number;
  hostBlocks: number;
  diskBlocks: number;
}

export interface ReserveRequest {
  requestId: string;
  worker: WorkerRankInput;
  sequenceHashes: BigUint64Array | readonly U64Input[];
  islTokens: number;
  effectivePrefillTokens?: number;
}

export type SnapshotPart = "index" | "load" | "random";

/** What a restored snapshot found here. */
export interface RestoreResult {
  /** Ranks of the snapshot that are here, by worker id and rank. */
  ranks: number;
  /** Ranks of the snapshot that are not: what it says of them is gone. */
  droppedRanks: number;
  /** Live bookings of those ranks; 0 unless the load was restored. */
  droppedBookings: number;
}

export interface RouterStats {
  index: { blocks: number; bytes: number; budgetBytes: number; orphans: number; refused: number; duplicates: number };
  bookings: { live: number; forgotten: number; expired: number };
  /** `unknownClasses`: requests whose caller named a class that is none. */
  queue: QueueStats & { unknownClasses: number };
  /** Sessions that have a rank or live requests, those idle for too long, and those that made room; absent without affinity. */
  sessions?: { known: number; expired: number; evicted: number };
  /** Prompts that ranks are believed to hold since they were sent there; absent where only events count. */
  predictions?: PredictionStats;
  /** Absent without a classifier. */
  classifier?: ClassifierStats;
  decisions: number;
}

/** The library's router. `probe` … `restore` are synchronous; `select` may one day wait in a queue. */
export interface Router extends AsyncDisposable {
  readonly model: string;
  readonly blockSize: number;
  readonly plugins: RouterPlugins;
  /** Takes part in one more entry point. Throws `role_not_served` or `classifier_not_supported`. */
  serveAt(entryPoint: EntryPointName): void;
  select(request: SelectRequest, options?: CallOptions): Promise<Selection>;
  /** Selects for an OpenAI body, and says what to send where; the caller sends it and has `track` follow the answer. */
  route(body: Record<string, unknown>, options?: RouteOptions): Promise<Selection>;
  /** Selects, sends and follows: the worker's chunks, or its one answer where the body asks for no stream. */
  generate(body: Record<string, unknown>, options?: RouteOptions): AsyncGenerator<unknown, void>;
  /** The OpenAI-compatible handler over this router. Never rejects. */
  fetch(request: Request): Promise<Response>;
  /** The rank that a selection would take now; books nothing and is not classified. Throws the empty outcomes. */
  bestWorker(request: Omit<SelectRequest, "requestId">): WorkerRank;
  probe(request: Omit<SelectRequest, "requestId">): ProbeResult;
  overlap(prompt: OverlapPrompt): OverlapRow[];
  reserve(request: ReserveRequest): Booking;
  booking(requestId: string): Booking | undefined;
  applyEvent(event: unknown): { applied: boolean; reason?: string };
  addWorker(worker: WorkerInput): WorkerRecord;
  removeWorker(workerId: U64Input): boolean;
  workers(): WorkerRecord[];
  /** The thresholds over which ranks are overloaded, after setting them to `thresholds` if these are given. */
  busyThresholds(thresholds?: BusyThresholds): BusyThresholds;
  /** Takes these workers or ranks out of every choice as overloaded, and no others; what thresholds say comes on top. */
  setOverloaded(ranks: readonly WorkerOrRank[]): void;
  /** Only these workers may be chosen, none of them if the list is empty; `null`: every worker. */
  setAvailable(workerIds: readonly U64Input[] | null): void;
  loads(): LoadRow[];
  stats(): RouterStats;
  /** The last decisions, newest last; empty unless `decisionLog` is given. */
  decisions(): Decision[];
  snapshot(options?: { include?: readonly SnapshotPart[] }): Uint8Array;
  /** Add the workers first: what the snapshot says of ranks that are not here is dropped. */
  restore(bytes: Uint8Array, options?: { parts?: readonly SnapshotPart[] }): RestoreResult;
  /** Refuses new requests at once; what is live may end within `graceMs` (0 unless given), then it is aborted. */
  close(options?: { graceMs?: number }): Promise<void>;
}
