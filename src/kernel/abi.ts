// The kernel's exports, as assembly/index.ts declares them. Pointers arrive signed: read them with `>>> 0`.

export interface KernelExports extends Record<string, unknown> {
  memory: WebAssembly.Memory;
  init(from: number, budget: bigint, blockSize: number, maxRanks: number, ownNames: number, seed: bigint): number;

  requestRow(): number;
  answerRow(): number;
  tokensArea(tokens: number): number;
  sequencesArea(): number;
  textArea(bytes: number): number;
  namesArea(blocks: number): number;
  localsArea(): number;

  localSeed(lora: number, loraLength: number, salt: number, saltLength: number): bigint;
  xxh3(pointer: number, length: number, seed: bigint): bigint;
  hashPrompt(tokens: number, blockSize: number, window: number, seed: bigint): number;
  chainEvent(blocks: number): number;

  decide(): number;
  choose(): number;
  explainTerms(row: number): number;
  explainProbabilities(): void;
  /** Books the last decision, whose columns are kept for its explanation. */
  bookKept(): number;
  releaseColumns(): void;

  prepare(inputs: number): number;
  gather(candidates: number, inputs: number): void;
  commit(candidate: number): number;
  abandon(): void;
  candidateColumn(which: number): number;
  randomUnit(): number;

  overlapOf(blocks: number): number;

  rankAdd(slot: number, workerId: bigint, dpRank: number): number;
  rankRemove(slot: number): number;
  rankFlags(slot: number, flags: number): void;
  rankCount(): number;
  rowOf(slot: number): number;
  slotOf(row: number): number;
  column(which: number): number;

  storeEvent(slot: number, tier: number, hasParent: number, parent: bigint, blocks: number): number;
  removeEvent(slot: number, tier: number, blocks: number): number;
  clearEvent(slot: number): number;

  reserve(slot: number, sharedBlocks: number, privateBlocks: number, prefillTokens: number): number;
  bookingGeneration(id: number): number;
  bookingSlot(id: number, generation: number): number;
  bookingPrefillComplete(id: number, generation: number): number;
  bookingOutputBlocks(id: number, generation: number, more: number, fraction: number): number;
  bookingFree(id: number, generation: number): number;

  /** Predicts the sequence hashes in namesArea(); the answer row has the prediction, as after decide() with `predict`. */
  predict(slot: number, blocks: number): void;
  /** Leaves at most the first blocks of a prediction; with 0 it ends. */
  predictionCut(id: number, generation: number, keep: number): void;
  bookingBlocks(id: number, generation: number): number;
  /** Distinct blocks that a rank is believed to hold. */
  believedBlocks(slot: number): number;

  /** Sets the kernel's time, in ms: loads that are read afterwards are those of that instant. */
  prefillClock(nowMs: number): void;
  /** How long the prefill of a booking takes alone, in ms; said at most once, right after it is booked. */
  bookingPrefillDuration(id: number, generation: number, ms: number): number;

  counter(which: number): number;

  recordsArea(bytes: number): number;
  exportBegin(part: number): void;
  exportNeeds(): number;
  exportNext(capacity: number): number;
  importRecords(part: number, bytes: number): number;
  importEnd(): void;
}

/** Doubles of the request row (assembly/select/request.ts). */
export const RequestDouble = { promptTokens: 4, params: 8, twoTier: 16, tierWeights: 19 } as const;

/** Words of the answer row. */
export const Answer = {
  slot: 0,
  row: 1,
  tied: 2,
  tieIndex: 3,
  booking: 4,
  generation: 5,
  blocks: 6,
  candidates: 7,
  noSignal: 8,
  region: 24,
  hasTierMatches: 25,
  prediction: 26,
  predictionGeneration: 27,
  predictedBlocks: 28,
  isPredicted: 29,
} as const;

/** Doubles of the answer row. */
export const AnswerDouble = { cost: 5, device: 6, host: 7, disk: 8, shared: 9, cached: 10, charged: 11 } as const;

/** In the slot of a record: a prediction, not a booking. */
export const BELIEVED = 2 ** 31;

/** Columns of rank rows, by number (assembly/index.ts `column`). */
export const Column = {
  prefill: 0,
  decode: 1,
  requests: 2,
  gate: 3,
  device: 4,
  host: 5,
  disk: 6,
  shared: 7,
  active: 8,
  taint: 9,
  cost: 10,
  probability: 11,
  predicted: 12,
  mask: 13,
} as const;

/** Columns of candidates, by number (assembly/select/candidates.ts): f64, then u32, then u8. */
export const CandidateColumn = {
  device: 0,
  host: 1,
  disk: 2,
  shared: 3,
  estimatedBlocks: 4,
  estimatedTokens: 5,
  prefill: 6,
  decodeCost: 7,
  requests: 8,
  multiplier: 9,
  unknown: 10,
  total: 11,
  scratch: 12,
  row: 13,
  slot: 14,
  rank: 15,
  known: 16,
  near: 17,
} as const;

/** Counters, by number (assembly/index.ts `counter`). */
export const Counter = {
  heldBlocks: 0,
  bytes: 1,
  budget: 2,
  duplicates: 3,
  unknownRemoves: 4,
  liveBookings: 5,
  predictions: 6,
} as const;
