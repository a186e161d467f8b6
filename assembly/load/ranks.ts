// Ranks: each has a slot, chosen by the host and stable, and a row. Rows are kept sorted by
// (worker id as u64, dp rank), so that a scan over rows is a scan in the order of ties and draws.
//
//   slot record 64 B
//   | worker id u64 | weight sum i64 | dp rank u32 | row u32 | first booking u32 | flags u32 |
//   | anchor f64, ms | done tokens f64 | front booking u32 | prefills of unknown duration u32 |   (prefills.ts)
//   | next slot + 1 u32 | believed blocks u32 |                             bookings.ts
import { give, takeZeroed } from "../memory/arena";
import { MEMORY_BUDGET, OK, TOO_MANY_RANKS, UNKNOWN_RANK } from "../status";
import { columnsInit, DECODE, f64Column, gateColumn, rankCount, rowInsert, rowRemove, slotOf } from "./columns";

export { columnAddress, rankCount, slotOf } from "./columns";

export const NO_ROW: u32 = 0xffffffff;
/** In a slot: what the rank is believed to hold, not what it works on (bookings.ts). */
export const BELIEVED: u32 = 1 << 31;

/** Bits of rankFlags(); either takes the rank out of every choice. */
export const OVERLOADED: u32 = 1;
export const UNAVAILABLE: u32 = 2;

/** Block weights are fixed point, so that whatever was added is taken away exactly. */
export const WEIGHT_SHIFT: u32 = 36;
export const WEIGHT_ONE: i64 = 1 << 36;
/** One half, and 1e-6 for fractions such as 0.1 that fixed point cannot hold. */
const ROUND_UP: i64 = (WEIGHT_ONE >> 1) + 68719;

const SLOT_BYTES: usize = 64;
/** What a rank leaves behind in its slot: the place in the list of prefills.ts, and 0. */
const LISTED_BYTES: usize = 8;
const FIRST_SLOTS: u32 = 64;

let slots: usize = 0;
let slotCapacity: u32 = 0;
let slotLimit: u32 = 0;

/** Starts without ranks. Slots are below `maxRanks`. False when there is no room. */
export function ranksInit(maxRanks: u32): bool {
  slotLimit = maxRanks;
  slotCapacity = 0;
  slots = 0;
  return columnsInit() && slotsReach(0);
}

/** Makes the slot table reach `slot`. */
function slotsReach(slot: u32): bool {
  if (slot < slotCapacity) return true;
  let reach = max(slotCapacity, FIRST_SLOTS);
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
@inline export function slotAt(slot: u32): usize {
  return slots + <usize>slot * SLOT_BYTES;
}

/** The first row whose rank is not below (workerId, dpRank). */
function lowerBound(workerId: u64, dpRank: u32): u32 {
  const count = rankCount();
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

/** Tells the ranks from `row` on which row they have. */
function renumber(row: u32): void {
  for (const end = rankCount(); row < end; row++) store<u32>(slotAt(slotOf(row)), row, 20);
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
  if (row < rankCount()) {
    const there = slotAt(slotOf(row));
    if (load<u64>(there) == workerId && load<u32>(there, 16) == dpRank) return TOO_MANY_RANKS;
  }
  if (!rowInsert(row, slot)) return MEMORY_BUDGET;
  const s = slotAt(slot);
  memory.fill(s, 0, SLOT_BYTES - LISTED_BYTES);
  store<u64>(s, workerId);
  store<u32>(s, dpRank, 16);
  renumber(row);
  return OK;
}

/** Takes a rank without bookings away (bookings.ts ends them first). */
export function rankDrop(slot: u32): void {
  const row = rowOf(slot);
  rowRemove(row);
  store<u32>(slotAt(slot), NO_ROW, 20);
  renumber(row);
}

/** The row of a slot; NO_ROW when it holds no rank. */
export function rowOf(slot: u32): u32 {
  return slot < slotCapacity ? load<u32>(slotAt(slot), 20) : NO_ROW;
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
  store<f64>(gateColumn() + (<usize>row << 3), flags ? Infinity : 0);
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

