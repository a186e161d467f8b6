// Columns: what cost and choice read and write, one number for each row.
//
//   one region of `capacity` rows (a multiple of 64)
//     13 columns of f64, `stride` bytes apart   static: prefill, decode, requests, gate
//                                               of one request: device, host, disk, shared, active, taint
//                                               results: cost, probability
//                                               of one request: predicted
//     group   f64 for each 64 rows              scratch of pick.ts
//     slot    u32 a row                         the rank (ranks.ts)
//     touched u32 a row                         slots whose `active` or `predicted` is not 0 (prompts.ts)
//     mask    u8 a row                          not 0 = excluded by this request
//
// gate is 0, or +Infinity for a rank that no request may take. Rows from rankCount() on are padding:
// gate and cost +Infinity, all else 0, so that vector loops may run past the end and never find them.
import { give, takeZeroed } from "../memory/arena";

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
export const PREDICTED: u32 = 12;
export const MASK: u32 = 13;
const F64_COLUMNS: usize = 13;

const FIRST_ROWS: u32 = 64;
/** Keeps equal rows of two columns out of the same cache set. */
const SKEW: usize = 320;

let columns: usize = 0;
let capacity: u32 = 0;
let stride: usize = 0;
let count: u32 = 0;

/** Starts without rows; false when there is no room. */
export function columnsInit(): bool {
  count = 0;
  capacity = 0;
  columns = 0;
  return grow();
}

// @ts-ignore: decorator
@inline function regionBytes(rows: u32): usize {
  return F64_COLUMNS * (<usize>rows * 8 + SKEW) + <usize>(rows >> 6) * 8 + <usize>rows * 9;
}

function grow(): bool {
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
  for (let c: usize = 0; c < F64_COLUMNS; c++) {
    memory.copy(columns + c * stride, old + c * oldStride, <usize>count << 3);
  }
  memory.copy(slotColumn(), oldSlots, <usize>count << 2);
  memory.copy(touchedColumn(), oldTouched, <usize>count << 2);
  memory.copy(maskColumn(), oldMask, count);
  give(old, regionBytes(oldCapacity));
  for (let row = count; row < rows; row++) padRow(row);
  return true;
}

/** Address of a column of f64, by number. */
export function f64Column(column: u32): usize {
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

/** Moves rows [from, count) of every column by `by` rows (1 or -1). */
function shift(from: u32, by: i32): void {
  const n = <usize>(count - from);
  const to = from + by;
  for (let c: usize = 0, at = columns; c < F64_COLUMNS; c++, at += stride) {
    memory.copy(at + (<usize>to << 3), at + (<usize>from << 3), n << 3);
  }
  memory.copy(slotColumn() + (<usize>to << 2), slotColumn() + (<usize>from << 2), n << 2);
  memory.copy(maskColumn() + to, maskColumn() + from, n);
}

/** Makes room for a row at `row`, open and without load, for the rank of `slot`; false when there is none. */
export function rowInsert(row: u32, slot: u32): bool {
  if (count == capacity && !grow()) return false;
  shift(row, 1);
  count++;
  padRow(row);
  store<f64>(gateColumn() + (<usize>row << 3), 0);
  store<u32>(slotColumn() + (<usize>row << 2), slot);
  return true;
}

/** Takes a row out. */
export function rowRemove(row: u32): void {
  shift(row + 1, -1);
  count--;
  padRow(count);
}

/** The slot of a row below rankCount(). */
// @ts-ignore: decorator
@inline export function slotOf(row: u32): u32 {
  return load<u32>(slotColumn() + (<usize>row << 2));
}

/** Ranks of the pool: rows that are no padding. */
export function rankCount(): u32 {
  return count;
}

/** What an f64 column says of a row. */
export function valueAt(column: u32, row: u32): f64 {
  return load<f64>(f64Column(column) + (<usize>row << 3));
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
@inline export function predictedColumn(): usize {
  return f64Column(PREDICTED);
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
