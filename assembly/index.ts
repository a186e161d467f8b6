// The ABI of the kernel: one exported function for each verb. Pointers are byte addresses in linear
// memory, to be read as unsigned. Areas move when a bigger one is asked for, and when memory grows
// all the host's views must be made anew.
import { arenaBudget, arenaFavour, arenaInit, arenaInUse, arenaReserve, give, take } from "./memory/arena";
import { extentsInit } from "./memory/extents";
import { chainBlocks, hashBlocks } from "./hash/blocks";
import { book, bookingBlocks, bookingCount, bookingsInit, predictionCount, predictionKeep } from "./load/bookings";
import { NO_ROW, ranksInit, rowOf } from "./load/ranks";
import {
  indexBlocksOf,
  indexClearRank,
  indexDuplicates,
  indexHeld,
  indexInit,
  indexRemove,
  indexStore,
  indexUnknownRemoves,
} from "./prefix/index";
import { decidePrompt } from "./select/decide";
import { prepareCandidates } from "./select/outside";
import { randomSeed } from "./select/random";
import { requestInit, matchColumns, predict as believe } from "./select/request";
import {
  exportIndexBegin,
  exportIndexNeeds,
  exportIndexNext,
  importIndexRecord,
} from "./snapshot/index-part";
import { exportLoadBegin, exportLoadNeeds, exportLoadNext, importLoadRecord } from "./snapshot/load-part";
import { BAD_RECORD, MEMORY_BUDGET, OK, UNKNOWN_RANK } from "./status";

// Verbs that need none of the areas below.
export { localSeed } from "./hash/seed";
export { xxh3_64 as xxh3 } from "./hash/xxh3";
export {
  believedBlocks,
  bookingBlocks,
  bookingFree,
  bookingOutputBlocks,
  bookingPrefillComplete,
  bookingSlot,
  rankRemove,
} from "./load/bookings";
export { bookingPrefillDuration, prefillClock } from "./load/prefills";
export { bookingGeneration } from "./load/records";
export { columnAddress as column, rankAdd, rankCount, rankFlags, rowOf, slotOf } from "./load/ranks";
export { indexClearRank as clearEvent } from "./prefix/index";
export { candidateColumn } from "./select/candidates";
export { chooseColumns as choose, explainProbabilities, explainTerms } from "./select/decide";
export { commit, gather } from "./select/outside";
export { abandon, answerRow, bookKept, releaseColumns, requestRow } from "./select/request";
export { randomUnit } from "./select/random";

// The parts that the verbs are made of, for measurements and tests.
export { arenaInUse, take } from "./memory/arena";
export { hashBlocks, localBlocks } from "./hash/blocks";
export { indexFind, indexOut, indexOutCount, indexRemove, indexStore } from "./prefix/index";
export { scoreRows } from "./select/cost";
export { pickRow } from "./select/pick";
export { randomSeed } from "./select/random";

// Areas that the host and the verbs write to, each as wide as was ever asked for: | address u32 | bytes u32 |
const tokens: usize = memory.data(8, 8);
const sequences: usize = memory.data(8, 8);
const text: usize = memory.data(8, 8);
const names: usize = memory.data(8, 8);
const locals: usize = memory.data(8, 8);
const records: usize = memory.data(8, 8);

let blockSize: u32 = 1;
let slots: u32 = 0;

/**
 * Starts an empty pool, once per instance. `from` is where the arena starts (0 = after the static data),
 * `budget` its bytes, `ownNames` 1 when blocks are named by their sequence hashes.
 * MEMORY_BUDGET when the budget does not hold an empty pool.
 */
export function init(from: usize, budget: u64, size: u32, maxRanks: u32, ownNames: u32, seed: u64): i32 {
  arenaInit(from, budget);
  blockSize = size;
  slots = maxRanks;
  requestInit(size);
  randomSeed(seed);
  const started = namesArea(64) && extentsInit() && ranksInit(maxRanks) && bookingsInit() && indexInit(ownNames != 0, maxRanks);
  return started ? OK : MEMORY_BUDGET;
}

/** The address of an area, of at least `bytes` bytes now; 0 when there is no room. */
function reach(area: usize, bytes: usize): usize {
  const old = load<usize>(area);
  const room = load<usize>(area, 4);
  if (old && bytes <= room) return old;
  const fresh = take(bytes);
  if (!fresh) return 0;
  give(old, room);
  store<usize>(area, fresh);
  store<usize>(area, bytes, 4);
  return fresh;
}

function reachBlocks(area: usize, blocks: u32): usize {
  return reach(area, <usize>blocks << 3);
}

/** Room for `n` tokens (u32) and the sequence hashes of their blocks; 0 when there is none. */
export function tokensArea(n: u32): usize {
  return reachBlocks(sequences, n / blockSize) ? reach(tokens, <usize>n << 2) : 0;
}

/** Where sequence hashes (u64) of the last prompt lie. */
export function sequencesArea(): usize {
  return load<usize>(sequences);
}

/** Room for `n` bytes of text; 0 when there is none. */
export function textArea(n: u32): usize {
  return reach(text, n);
}

/** Room for the names (u64) and the local hashes (u64) of `n` blocks of an event; 0 when there is none. */
export function namesArea(n: u32): usize {
  return reachBlocks(locals, n) ? reachBlocks(names, n) : 0;
}
export function localsArea(): usize {
  return load<usize>(locals);
}

// ---- hashing

/**
 * Hashes the prompt of `n` tokens into sequencesArea(), and its local hashes into localsArea().
 * Answers the complete blocks, or MEMORY_BUDGET.
 */
export function hashPrompt(n: u32, size: u32, window: u32, seed: u64): i32 {
  if (!namesArea(n / size) || !reachBlocks(sequences, n / size)) return MEMORY_BUDGET;
  return hashBlocks(load<usize>(tokens), n, size, window, seed, localsArea(), sequencesArea());
}

/** Chains the `n` local hashes of localsArea() into sequencesArea(). OK or MEMORY_BUDGET. */
export function chainEvent(n: u32): i32 {
  if (!reachBlocks(sequences, n)) return MEMORY_BUDGET;
  chainBlocks(localsArea(), n, sequencesArea(), false, 0);
  return OK;
}

// ---- decisions

/** Decides for the prompt in tokensArea() as the request row says; the answer row has the result. */
export function decide(): i32 {
  return decidePrompt(load<usize>(tokens), sequencesArea());
}

/**
 * As decide() up to the choice, for a policy outside the kernel: how many candidates there are, or why none. Their
 * columns of `inputs` are filled; gather(), commit() and abandon() go on from there.
 */
export function prepare(inputs: u32): i32 {
  return prepareCandidates(load<usize>(tokens), sequencesArea(), inputs);
}

/** Fills the overlap columns for the `n` hashes of sequencesArea(); releaseColumns() empties them. */
export function overlapOf(n: u32): void {
  matchColumns(sequencesArea(), n, false);
}

// ---- events: names and local hashes lie in namesArea() and localsArea()

/** Stores `n` blocks after `parent`, or from the start. The block count, or why it was refused. */
export function storeEvent(slot: u32, tier: u32, hasParent: u32, parent: u64, n: u32): i32 {
  if (rowOf(slot) == NO_ROW) return UNKNOWN_RANK;
  arenaFavour(true);
  const status = indexStore(slot, tier, hasParent != 0, parent, n, load<usize>(names), localsArea());
  arenaFavour(false);
  if (status == OK) reserveAhead();
  return status;
}

/** Removes the `n` named blocks; answers how many were held. */
export function removeEvent(slot: u32, tier: u32, n: u32): u32 {
  return indexRemove(slot, tier, load<usize>(names), n);
}

/** Grows memory while an event is handled, so that requests find room without growing. */
function reserveAhead(): void {
  arenaReserve(1 << 20);
}

// ---- bookings

/** Books `n` sequence hashes of namesArea() on a rank, and blocks that are shared with none; the id, 0 when there is no room. */
export function reserve(slot: u32, n: u32, privateBlocks: u32, prefillTokens: f64): u32 {
  return book(slot, load<usize>(names), n, privateBlocks, prefillTokens);
}

/** Predicts `n` sequence hashes of namesArea() on a rank; the answer row has the prediction. */
export function predict(slot: u32, n: u32): void {
  believe(slot, load<usize>(names), n);
}

/** Leaves at most the first `keep` blocks of a prediction; with 0, and where there is no room to do so, it ends. */
export function predictionCut(id: u32, generation: u32, keep: u32): void {
  const scratch = keep ? reachBlocks(names, bookingBlocks(id, generation)) : 0;
  predictionKeep(id, generation, scratch ? keep : 0, scratch);
}

// ---- snapshots: whole records of one part, through recordsArea()

const INDEX_PART: u32 = 0;
let exporting: u32 = 0;

/** Room for `n` bytes of records, 0 when there is none; 0 bytes gives the room back. */
export function recordsArea(n: u32): usize {
  if (n) return reach(records, n);
  give(load<usize>(records), load<usize>(records, 4));
  store<usize>(records, 0);
  return 0;
}

/** Starts to write a part: 0 the index, 1 the generator's state and all bookings. */
export function exportBegin(part: u32): void {
  exporting = part;
  if (part == INDEX_PART) exportIndexBegin();
  else exportLoadBegin(true);
}

/** Bytes of the part's next record; 0 when all are written. */
export function exportNeeds(): u32 {
  return exporting == INDEX_PART ? exportIndexNeeds() : exportLoadNeeds();
}

/** Writes as many whole records as fit into `capacity` bytes of recordsArea(); the bytes written, 0 at the end. */
export function exportNext(capacity: u32): i32 {
  const to = load<usize>(records);
  return exporting == INDEX_PART ? exportIndexNext(to, capacity) : exportLoadNext(to, capacity);
}

/** Applies the records in `bytes` bytes of recordsArea(). OK, BAD_RECORD or MEMORY_BUDGET; not all or nothing. */
export function importRecords(part: u32, bytes: u32): i32 {
  for (let done: u32 = 0; done < bytes; ) {
    const at = load<usize>(records) + done;
    const length = bytes - done >= 8 ? load<u32>(at, 4) : 0;
    if (length < 8 || length > bytes - done) return BAD_RECORD;
    const status = part == INDEX_PART ? importIndexRecord(at, length) : importLoadRecord(at, length);
    if (status != OK) return status;
    done += length;
  }
  return OK;
}

/** Forgets what imported records say of slots that hold no rank. */
export function importEnd(): void {
  for (let slot: u32 = 0; slot < slots; slot++) if (rowOf(slot) == NO_ROW && indexBlocksOf(slot)) indexClearRank(slot);
}

// ---- counters

/** A figure of the pool: 0 held blocks, 1 bytes in use, 2 budget, 3 duplicates, 4 unknown removes, 5 live bookings, 6 predictions. */
export function counter(which: u32): f64 {
  switch (which) {
    case 0:
      return <f64>(indexHeld(0) + indexHeld(1) + indexHeld(2) + indexHeld(3));
    case 1:
      return <f64>arenaInUse();
    case 2:
      return <f64>arenaBudget();
    case 3:
      return <f64>indexDuplicates;
    case 4:
      return <f64>indexUnknownRemoves;
    case 5:
      return <f64>bookingCount();
    default:
      return <f64>predictionCount();
  }
}
