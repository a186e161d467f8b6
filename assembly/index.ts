// The ABI of the kernel: one exported function for each verb. Pointers are byte addresses in linear
// memory, to be read as unsigned. Areas move when a bigger one is asked for, and when memory grows
// all the host's views must be made anew.
import { arenaBudget, arenaFavour, arenaInit, arenaInUse, arenaReserve, give, take } from "./memory/arena";
import { extentsInit } from "./memory/extents";
import { chainBlocks, hashBlocks, localSeed as seedOf } from "./hash/blocks";
import { xxh3_64 } from "./hash/xxh3";
import { book, bookingCount, bookingsInit } from "./load/bookings";
import { columnAddress, NO_ROW, ranksInit, rowOf } from "./load/ranks";
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
import { chooseColumns, decideInit, decidePrompt, matchColumns } from "./select/decide";
import { randomSeed } from "./select/random";
import {
  exportIndexBegin,
  exportIndexNeeds,
  exportIndexNext,
  importIndexRecord,
} from "./snapshot/index-part";
import { exportLoadBegin, exportLoadNeeds, exportLoadNext, importLoadRecord } from "./snapshot/load-part";
import { BAD_RECORD, MEMORY_BUDGET, OK, UNKNOWN_RANK } from "./status";

export { bookingFree, bookingGeneration, bookingOutputBlocks, bookingPrefillComplete, bookingSlot, rankRemove } from "./load/bookings";
export { rankAdd, rankCount, rankFlags, rowOf, slotOf } from "./load/ranks";
export { answerRow, explainProbabilities, explainTerms, releaseColumns, requestRow } from "./select/decide";

// The parts that the verbs are made of, for measurements and tests.
export { arenaInUse, take } from "./memory/arena";
export { hashBlocks, localBlocks } from "./hash/blocks";
export { indexClearRank, indexFind, indexOut, indexOutCount, indexRemove, indexStore, indexStoreSequence } from "./prefix/index";
export { scoreRows } from "./select/cost";
export { pickRow } from "./select/pick";
export { randomNext, randomSeed, randomUnit } from "./select/random";

let tokens: usize = 0;
let tokenRoom: u32 = 0;
let sequences: usize = 0;
let sequenceRoom: u32 = 0;
let text: usize = 0;
let textRoom: u32 = 0;
let names: usize = 0;
let locals: usize = 0;
let eventRoom: u32 = 0;
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
  decideInit(size);
  randomSeed(seed);
  const started = namesArea(64) && extentsInit() && ranksInit(maxRanks) && bookingsInit() && indexInit(ownNames != 0, maxRanks);
  return started ? OK : MEMORY_BUDGET;
}

/** Room for `n` tokens (u32) and the sequence hashes of their blocks; 0 when there is none. */
export function tokensArea(n: u32): usize {
  if (n > tokenRoom) {
    const fresh = take(<usize>n << 2);
    if (!fresh) return 0;
    give(tokens, <usize>tokenRoom << 2);
    tokens = fresh;
    tokenRoom = n;
  }
  return sequencesRoom(n / blockSize) ? tokens : 0;
}

function sequencesRoom(blocks: u32): bool {
  if (blocks <= sequenceRoom) return true;
  const fresh = take(<usize>blocks << 3);
  if (!fresh) return false;
  give(sequences, <usize>sequenceRoom << 3);
  sequences = fresh;
  sequenceRoom = blocks;
  return true;
}

/** Where sequence hashes (u64) of the last prompt lie. */
export function sequencesArea(): usize {
  return sequences;
}

/** Room for `n` bytes of text; 0 when there is none. */
export function textArea(n: u32): usize {
  if (n > textRoom || !text) {
    const fresh = take(max(n, 64));
    if (!fresh) return 0;
    give(text, textRoom);
    text = fresh;
    textRoom = max(n, 64);
  }
  return text;
}

/** Room for the names (u64) and the local hashes (u64) of `n` blocks of an event; 0 when there is none. */
export function namesArea(n: u32): usize {
  if (n > eventRoom || !eventRoom) {
    let room = max(eventRoom, 64);
    while (room < n) room <<= 1;
    const fresh = take(<usize>room << 4);
    if (!fresh) return 0;
    give(names, <usize>eventRoom << 4);
    names = fresh;
    locals = fresh + (<usize>room << 3);
    eventRoom = room;
  }
  return names;
}
export function localsArea(): usize {
  return locals;
}

// ---- hashing

/** Seed of local hashes for an adapter name and a cache salt; a length of 0 is none. */
export function localSeed(lora: usize, loraLength: u32, salt: usize, saltLength: u32): u64 {
  return seedOf(lora, loraLength, salt, saltLength);
}

/** XXH3-64 of `length` bytes. */
export function xxh3(pointer: usize, length: u32, seed: u64): u64 {
  return xxh3_64(pointer, length, seed);
}

/**
 * Hashes the prompt of `n` tokens into sequencesArea(), and its local hashes into localsArea().
 * Answers the complete blocks, or MEMORY_BUDGET.
 */
export function hashPrompt(n: u32, size: u32, window: u32, seed: u64): i32 {
  if (!namesArea(n / size) || !sequencesRoom(n / size)) return MEMORY_BUDGET;
  return hashBlocks(tokens, n, size, window, seed, locals, sequences);
}

/** Chains the `n` local hashes of localsArea() into sequencesArea(). OK or MEMORY_BUDGET. */
export function chainEvent(n: u32): i32 {
  if (!sequencesRoom(n)) return MEMORY_BUDGET;
  chainBlocks(locals, n, sequences, false, 0);
  return OK;
}

// ---- decisions

/** Decides for the prompt in tokensArea() as the request row says; the answer row has the result. */
export function decide(): i32 {
  return decidePrompt(tokens, sequences);
}

/** Decides over the columns as they are. */
export function choose(): i32 {
  return chooseColumns();
}

/** Fills the overlap columns for the `n` hashes of sequencesArea(); releaseColumns() empties them. */
export function overlapOf(n: u32): void {
  matchColumns(sequences, n);
}

/** Address of a rank column, by number (load/ranks.ts). */
export function column(which: u32): usize {
  return columnAddress(which);
}

// ---- events: names and local hashes lie in namesArea() and localsArea()

/** Stores `n` blocks after `parent`, or from the start. The block count, or why it was refused. */
export function storeEvent(slot: u32, tier: u32, hasParent: u32, parent: u64, n: u32): i32 {
  if (rowOf(slot) == NO_ROW) return UNKNOWN_RANK;
  arenaFavour(true);
  const status = indexStore(slot, tier, hasParent != 0, parent, n, names, locals);
  arenaFavour(false);
  if (status == OK) reserveAhead();
  return status;
}

/** Removes the `n` named blocks; answers how many were held. */
export function removeEvent(slot: u32, tier: u32, n: u32): u32 {
  return indexRemove(slot, tier, names, n);
}

/** Forgets all blocks of a rank. */
export function clearEvent(slot: u32): u32 {
  return indexClearRank(slot);
}

/** Grows memory while an event is handled, so that requests find room without growing. */
function reserveAhead(): void {
  arenaReserve(1 << 20);
}

// ---- bookings

/** Books `n` sequence hashes of namesArea() on a rank; the booking's id, 0 when there is no room. */
export function reserve(slot: u32, n: u32, prefillTokens: f64): u32 {
  return book(slot, names, n, 0, prefillTokens);
}

// ---- snapshots: whole records of one part, through recordsArea()

const INDEX_PART: u32 = 0;
let exporting: u32 = 0;
let records: usize = 0;
let recordRoom: u32 = 0;

/** Room for `n` bytes of records, 0 when there is none; 0 bytes gives the room back. */
export function recordsArea(n: u32): usize {
  if (n > recordRoom || !n) {
    give(records, recordRoom);
    records = n ? take(n) : 0;
    recordRoom = records ? n : 0;
  }
  return records;
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
  return exporting == INDEX_PART ? exportIndexNext(records, capacity) : exportLoadNext(records, capacity);
}

/** Applies the records in `bytes` bytes of recordsArea(). OK, BAD_RECORD or MEMORY_BUDGET; not all or nothing. */
export function importRecords(part: u32, bytes: u32): i32 {
  for (let at: u32 = 0; at < bytes; ) {
    const length = bytes - at >= 8 ? load<u32>(records + at, 4) : 0;
    if (length < 8 || length > bytes - at) return BAD_RECORD;
    const p = records + at;
    const status = part == INDEX_PART ? importIndexRecord(p, length) : importLoadRecord(p, length);
    if (status != OK) return status;
    at += length;
  }
  return OK;
}

/** Forgets what imported records say of slots that hold no rank. */
export function importEnd(): void {
  for (let slot: u32 = 0; slot < slots; slot++) if (rowOf(slot) == NO_ROW && indexBlocksOf(slot)) indexClearRank(slot);
}

// ---- counters

/** A figure of the pool: 0 held blocks, 1 bytes in use, 2 budget, 3 duplicates, 4 unknown removes, 5 live bookings. */
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
    default:
      return <f64>bookingCount();
  }
}
