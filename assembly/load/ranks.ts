// Ranks: each has a slot, chosen by the host and stable, and a row. Rows are kept sorted by
// (worker id as u64, dp rank), so that a scan over rows is a scan in the order of ties and draws.
//
//   slot record 32 B   | worker id u64 | weight sum i64 | dp rank u32 | row u32 | first booking u32 | flags u32 |
//
//   columns, one region of `capacity` rows (a multiple of 64)
//     12 columns of f64, `stride` bytes apart   static: prefill, decode, requests, gate
//                                               of one request: device, host, disk, shared, active, taint
//                                               results: cost, probability
//     group   f64 for each 64 rows              scratch of pick.ts
//     slot    u32 a row
//     touched u32 a row                         slots whose `active` is not 0 (prompts.ts)
//     mask    u8 a row                          not 0 = excluded by this request
//
// Rows from rankCount() on are padding: gate and cost +Infinity, all else 0, so that vector loops
// may run past the end and never find them.
import { give, take, takeZeroed } from "../memory/arena";
import { MEMORY_BUDGET, OK, TOO_MANY_RANKS, UNKNOWN_RANK } from "../status";

export const NO_ROW: u32 = 0xffffffff;

/** Numbers of the columns, as columnAddress() takes them. */
export const PREFILL: u32 = 0;
export const DECODE: u32 = 1;
export const REQUESTS: u32 = 2;
export const GATE: u32 = 3;
export const DEVICE: u32 = 4;
export const HOST: u32 = 5;
export const DISK: u32 = 6;
export const SHARED: u32 = 7;
export const ACTIVE: u32 = 8;
export const TAINT: u32 = 9;
export const COST: u32 = 10;
export const PROBABILITY: u32 = 11;
export const MASK: u32 = 12;
const F64_COLUMNS: usize = 12;

/** Bits of rankFlags(); either takes the rank out of every choice. */
export const OVERLOADED: u32 = 1;
export const UNAVAILABLE: u32 = 2;

/** Block weights are fixed point, so that whatever was added is taken away exactly. */
export const WEIGHT_SHIFT: u32 = 36;
export const WEIGHT_ONE: i64 = 1 << 36;
/** One half, and 1e-6 for fractions such as 0.1 that fixed point cannot hold. */
const ROUND_UP: i64 = (WEIGHT_ONE >> 1) + 68719;

const SLOT_BYTES: usize = 32;
const FIRST_ROWS: u32 = 64;
/** Keeps equal rows of two columns out of the same cache set. */
const SKEW: usize = 320;

let slots: usize = 0;
let slotCapacity: u32 = 0;
let slotLimit: u32 = 0;
let columns: usize = 0;
let capacity: u32 = 0;
let stride: usize = 0;
let count: u32 = 0;

/** Starts without ranks. Slots are below `maxRanks`. False when there is no room. */
export function ranksInit(maxRanks: u32): bool {
  slotLimit = maxRanks;
  slotCapacity = 0;
  slots = 0;
  count = 0;
  capacity = 0;
  columns = 0;
  return growRows() && slotsReach(0);
}

// @ts-ignore: decorator
@inline function regionBytes(rows: u32): usize {
  return F64_COLUMNS * (<usize>rows * 8 + SKEW) + <usize>(rows >> 6) * 8 + <usize>rows * 9;
}

function growRows(): bool {
  const rows = capacity ? capacity << 1 : FIRST_ROWS;
  const region = takeZeroed(regionBytes(rows));
  if (!region) return false;
  const old = columns;
  const oldStride = stride;
  const oldCapacity = capacity;
  const oldSlots = slotColumn();
  const oldTouched = touchedColumn();
  const oldMask = maskColumn();
  columns = region;
  capacity = rows;
  stride = <usize>rows * 8 + SKEW;
  if (oldCapacity) {
    for (let c: usize = 0; c < F64_COLUMNS; c++) {
      memory.copy(columns + c * stride, old + c * oldStride, <usize>count << 3);
    }
    memory.copy(slotColumn(), oldSlots, <usize>count << 2);
    memory.copy(touchedColumn(), oldTouched, <usize>count << 2);
    memory.copy(maskColumn(), oldMask, count);
    give(old, regionBytes(oldCapacity));
  }
  for (let row = count; row < rows; row++) padRow(row);
  return true;
}

/** Makes the slot table reach `slot`. */
function slotsReach(slot: u32): bool {
  if (slot < slotCapacity) return true;
  let reach = max(slotCapacity, FIRST_ROWS);
  while (reach <= slot) reach <<= 1;
  const table = takeZeroed(<usize>reach * SLOT_BYTES);
  if (!table) return false;
  if (slots) {
    memory.copy(table, slots, <usize>slotCapacity * SLOT_BYTES);
    give(slots, <usize>slotCapacity * SLOT_BYTES);
  }
  slots = table;
  for (let s = slotCapacity; s < reach; s++) store<u32>(slotAt(s), NO_ROW, 20);
  slotCapacity = reach;
  return true;
}

// @ts-ignore: decorator
@inline function slotAt(slot: u32): usize {
  return slots + <usize>slot * SLOT_BYTES;
}

// @ts-ignore: decorator
@inline export function f64Column(column: u32): usize {
  return columns + <usize>column * stride;
}
// @ts-ignore: decorator
@inline export function groupColumn(): usize {
  return columns + F64_COLUMNS * stride;
}
// @ts-ignore: decorator
@inline function slotColumn(): usize {
  return groupColumn() + (<usize>(capacity >> 6) << 3);
}
// @ts-ignore: decorator
@inline export function touchedColumn(): usize {
  return slotColumn() + (<usize>capacity << 2);
}
// @ts-ignore: decorator
@inline export function maskColumn(): usize {
  return touchedColumn() + (<usize>capacity << 2);
}

/** Address of a column, by number: f64 a row, MASK u8 a row. Adding a rank may move it. */
export function columnAddress(column: u32): usize {
  return column == MASK ? maskColumn() : f64Column(column);
}

/** Rows that vector loops visit: the ranks, and padding up to a multiple of 4. */
// @ts-ignore: decorator
@inline export function paddedRows(): u32 {
  return (count + 3) & ~3;
}

function padRow(row: u32): void {
  const at = columns + (<usize>row << 3);
  for (let c: usize = 0; c < F64_COLUMNS; c++) store<f64>(at + c * stride, c == GATE || c == COST ? Infinity : 0);
  store<u8>(maskColumn() + row, 0);
}

/** Moves rows [from, count) of every column by `by` rows (1 or -1), and tells their slots. */
function shiftRows(from: u32, by: i32): void {
  const n = <usize>(count - from);
  const to = from + by;
  for (let c: usize = 0, at = columns; c < F64_COLUMNS; c++, at += stride) {
    memory.copy(at + (<usize>to << 3), at + (<usize>from << 3), n << 3);
  }
  memory.copy(slotColumn() + (<usize>to << 2), slotColumn() + (<usize>from << 2), n << 2);
  memory.copy(maskColumn() + to, maskColumn() + from, n);
  for (let row = to; row < to + <u32>n; row++) store<u32>(slotAt(slotOf(row)), row, 20);
}

/** The first row whose rank is not below (workerId, dpRank). */
function lowerBound(workerId: u64, dpRank: u32): u32 {
  if (count && below(count - 1, workerId, dpRank)) return count;
  let low: u32 = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (below(middle, workerId, dpRank)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function below(row: u32, workerId: u64, dpRank: u32): bool {
  const s = slotAt(slotOf(row));
  const w = load<u64>(s);
  return w < workerId || (w == workerId && load<u32>(s, 16) < dpRank);
}

/**
 * Adds a rank without load. TOO_MANY_RANKS: the slot is beyond the limit or in use, or the rank
 * has another slot. MEMORY_BUDGET: no room; nothing was changed.
 */
export function rankAdd(slot: u32, workerId: u64, dpRank: u32): i32 {
  if (slot >= slotLimit) return TOO_MANY_RANKS;
  if (!slotsReach(slot)) return MEMORY_BUDGET;
  if (rowOf(slot) != NO_ROW) return TOO_MANY_RANKS;
  const row = lowerBound(workerId, dpRank);
  if (row < count) {
    const there = slotAt(slotOf(row));
    if (load<u64>(there) == workerId && load<u32>(there, 16) == dpRank) return TOO_MANY_RANKS;
  }
  if (count == capacity && !growRows()) return MEMORY_BUDGET;
  shiftRows(row, 1);
  count++;
  padRow(row);
  store<f64>(f64Column(GATE) + (<usize>row << 3), 0);
  store<u32>(slotColumn() + (<usize>row << 2), slot);
  const s = slotAt(slot);
  memory.fill(s, 0, SLOT_BYTES);
  store<u64>(s, workerId);
  store<u32>(s, dpRank, 16);
  store<u32>(s, row, 20);
  return OK;
}

/** Takes a rank without bookings away (bookings.ts ends them first). */
export function rankDrop(slot: u32): void {
  const row = rowOf(slot);
  shiftRows(row + 1, -1);
  count--;
  padRow(count);
  store<u32>(slotAt(slot), NO_ROW, 20);
}

/** The row of a slot; NO_ROW when it holds no rank. */
export function rowOf(slot: u32): u32 {
  return slot < slotCapacity ? load<u32>(slotAt(slot), 20) : NO_ROW;
}

/** The slot of a row below rankCount(). */
export function slotOf(row: u32): u32 {
  return load<u32>(slotColumn() + (<usize>row << 2));
}

/** Ranks of the pool. */
export function rankCount(): u32 {
  return count;
}

/** The worker id of a slot that holds a rank. */
export function rankWorkerId(slot: u32): u64 {
  return load<u64>(slotAt(slot));
}

/** The dp rank of a slot that holds a rank. */
export function rankDpRank(slot: u32): u32 {
  return load<u32>(slotAt(slot), 16);
}

/** Sets whether a rank may be chosen: OVERLOADED, UNAVAILABLE, or 0. */
export function rankFlags(slot: u32, flags: u32): i32 {
  const row = rowOf(slot);
  if (row == NO_ROW) return UNKNOWN_RANK;
  store<u32>(slotAt(slot), flags, 28);
  store<f64>(f64Column(GATE) + (<usize>row << 3), flags ? Infinity : 0);
  return OK;
}

/** The flags of a slot that holds a rank. */
export function rankFlagsOf(slot: u32): u32 {
  return load<u32>(slotAt(slot), 28);
}

/** Head of the slot's list of bookings (bookings.ts): a u32 at the address answered. */
// @ts-ignore: decorator
@inline export function bookingListOf(slot: u32): usize {
  return slotAt(slot) + 24;
}

/** Adds to the weights of a rank's active blocks, and rounds half away from zero for its column. */
export function chargeBlocks(slot: u32, weight: i64): void {
  const s = slotAt(slot);
  const sum = load<i64>(s, 8) + weight;
  store<i64>(s, sum, 8);
  store<f64>(f64Column(DECODE) + (<usize>load<u32>(s, 20) << 3), <f64>((sum + ROUND_UP) >> WEIGHT_SHIFT));
}

/** Adds to a rank's column of active prefill tokens or active requests. */
// @ts-ignore: decorator
@inline export function chargeColumn(column: u32, slot: u32, amount: f64): void {
  const at = f64Column(column) + (<usize>load<u32>(slotAt(slot), 20) << 3);
  store<f64>(at, load<f64>(at) + amount);
}

// @ts-ignore: decorator
@inline export function prefillColumn(): usize {
  return f64Column(PREFILL);
}
// @ts-ignore: decorator
@inline export function decodeColumn(): usize {
  return f64Column(DECODE);
}
// @ts-ignore: decorator
@inline export function requestsColumn(): usize {
  return f64Column(REQUESTS);
}
// @ts-ignore: decorator
@inline export function gateColumn(): usize {
  return f64Column(GATE);
}
// @ts-ignore: decorator
@inline export function deviceColumn(): usize {
  return f64Column(DEVICE);
}
// @ts-ignore: decorator
@inline export function hostColumn(): usize {
  return f64Column(HOST);
}
// @ts-ignore: decorator
@inline export function diskColumn(): usize {
  return f64Column(DISK);
}
// @ts-ignore: decorator
@inline export function sharedColumn(): usize {
  return f64Column(SHARED);
}
// @ts-ignore: decorator
@inline export function activeColumn(): usize {
  return f64Column(ACTIVE);
}
// @ts-ignore: decorator
@inline export function taintColumn(): usize {
  return f64Column(TAINT);
}
// @ts-ignore: decorator
@inline export function costColumn(): usize {
  return f64Column(COST);
}
// @ts-ignore: decorator
@inline export function probabilityColumn(): usize {
  return f64Column(PROBABILITY);
}
