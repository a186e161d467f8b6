// Lanes: one rank's holding of one run in one tier. Holders never split a run: a lane says how
// far its blocks reach without a gap (covered) and keeps the rest, holes included, in chunks.
//
//   lane 64 B   | run u32 | holder u32 | covered u32 | held u32 | top u32 | list u32 |
//               | first chunk u32 | last chunk u32 | next, previous of the run's list u32 × 2 |
//               | next, previous of the rank's list u32 × 2 | - 16 B |
//
// A holder is a rank slot with its tier in the bits above 14. top is one past the last held
// block. A lane is in one of its run's lists: full (device, all blocks; its slot is in the
// run's set too), partial (device) or lower (any other tier).
import { slabAt, slabDirectory, slabGive, slabNew, slabTake } from "../memory/slab";
import { takeZeroed } from "../memory/arena";
import { tableDrop, tableHome, tableInit, tableMask, tablePut, tableReserve, tableSlot } from "./ids";
import { RUN_FULL, RUN_LOWER, RUN_PARTIAL, RUN_PARTIALS, RUN_SEATED, RUN_SEATS, RUN_SET, runAt } from "./runs";
import { setAdd, setRemove } from "./sets";

export const LANE_BYTES: u32 = 64;
export const LANE_COVERED: usize = 8;
export const LANE_HELD: usize = 12;
export const LANE_TOP: usize = 16;
const LANE_LIST: usize = 20;
export const LANE_FIRST: usize = 24;
export const LANE_LAST: usize = 28;
export const LANE_NEXT: usize = 32;
const LANE_PREVIOUS: usize = 36;
export const LANE_RANK_NEXT: usize = 40;
const LANE_RANK_PREVIOUS: usize = 44;
/** Lane ids stay below this, so that a chunk can name them. */
export const LANE_LIMIT: u32 = 1 << 24;

export const SLOT_BITS: u32 = 14;
export const SLOT_LIMIT: u32 = 1 << SLOT_BITS;
export const TIERS: u32 = 4;

export const lanes: usize = memory.data(16, 8);
export let laneSlab: usize = 0;
let directory: usize = 0;

// One record for each slot: | first lane u32 | held blocks u32 |
let slots: usize = 0;
/** How many slots there are. */
export let rankLimit: u32 = 0;
/** Bytes of a bitset that reach the highest slot seen, a multiple of 16. */
export let slotBytes: usize = 0;

export function lanesInit(maxRanks: u32): bool {
  laneSlab = slabNew(LANE_BYTES);
  slots = takeZeroed(<usize>maxRanks << 3);
  if (!laneSlab || !slots || !tableInit(lanes)) return false;
  directory = slabDirectory(laneSlab);
  rankLimit = maxRanks;
  slotBytes = 16;
  return true;
}

// @ts-ignore: decorator
@inline export function laneAt(id: u32): usize {
  return slabAt(directory, LANE_BYTES, id);
}

// @ts-ignore: decorator
@inline export function laneRun(p: usize): u32 {
  return load<u32>(p);
}

// @ts-ignore: decorator
@inline export function laneHolder(p: usize): u32 {
  return load<u32>(p, 4);
}

// @ts-ignore: decorator
@inline export function holderOf(slot: u32, tier: u32): u32 {
  return slot | (tier << SLOT_BITS);
}

// @ts-ignore: decorator
@inline export function holderSlot(holder: u32): u32 {
  return holder & (SLOT_LIMIT - 1);
}

/** Bytes of a bitset that reaches this slot, a multiple of 16. */
// @ts-ignore: decorator
@inline export function bytesToReach(slot: u32): usize {
  return <usize>((slot >> 7) + 1) << 4;
}

// @ts-ignore: decorator
@inline export function slotAt(slot: u32): usize {
  return slots + (<usize>slot << 3);
}

/** True when the lane is in its run's partial list. */
// @ts-ignore: decorator
@inline export function laneIsPartial(p: usize): bool {
  return load<u32>(p, LANE_LIST) == <u32>RUN_PARTIAL;
}

/** True when the lane is in its run's full list. */
// @ts-ignore: decorator
@inline export function laneIsFull(p: usize): bool {
  return load<u32>(p, LANE_LIST) == <u32>RUN_FULL;
}

// @ts-ignore: decorator
@inline function laneKey(run: u32, holder: u32): u32 {
  return <u32>((((<u64>run << 16) | holder) * 0x9E3779B97F4A7C15) >> 32);
}

/** The lane of this holder on this run, 0 when there is none. */
export function laneFind(run: u32, holder: u32): u32 {
  const key = laneKey(run, holder);
  const mask = tableMask(lanes);
  let i = tableHome(lanes, key);
  while (true) {
    const s = tableSlot(lanes, i);
    const id = load<u32>(s);
    if (!id) return 0;
    if (load<u32>(s, 4) == key) {
      const p = laneAt(id);
      if (laneRun(p) == run && laneHolder(p) == holder) return id;
    }
    i = (i + 1) & mask;
  }
}

// A run with at most five partial lanes keeps | slot | covered << 14 | of each in its seats, so that
// a lookup reads no lane. Seats taken: 0 = to be filled anew, SEATS + 2 = too many lanes, else lanes + 1.
const SEATS: u32 = 5;

/** Coverage of a lane; the run's seats are filled anew when they are next asked for. */
// @ts-ignore: decorator
@inline export function setCovered(run: usize, lane: usize, covered: u32): void {
  store<u32>(lane, covered, LANE_COVERED);
  store<u32>(run, 0, RUN_SEATED);
}

/** How many seats of a run hold its partial lanes; −1 when there are too many lanes for that. */
// @ts-ignore: decorator
@inline export function seatsOf(run: usize): i32 {
  const taken = load<u32>(run, RUN_SEATED);
  return taken ? (taken > SEATS + 1 ? -1 : <i32>taken - 1) : fillSeats(run);
}

function fillSeats(run: usize): i32 {
  const count = load<u32>(run, RUN_PARTIALS);
  store<u32>(run, min(count, SEATS + 1) + 1, RUN_SEATED);
  if (count > SEATS) return -1;
  let seat = run + RUN_SEATS;
  for (let lane = load<u32>(run, RUN_PARTIAL); lane; lane = load<u32>(laneAt(lane), LANE_NEXT)) {
    const p = laneAt(lane);
    store<u32>(seat, laneHolder(p) | (load<u32>(p, LANE_COVERED) << SLOT_BITS));
    seat += 4;
  }
  return <i32>count;
}

/** The slot and the coverage in seat `i` of a run. */
// @ts-ignore: decorator
@inline export function seatSlot(run: usize, i: i32): u32 {
  return load<u32>(run + (<usize>i << 2), RUN_SEATS) & (SLOT_LIMIT - 1);
}

// @ts-ignore: decorator
@inline export function seatCovered(run: usize, i: i32): u32 {
  return load<u32>(run + (<usize>i << 2), RUN_SEATS) >> SLOT_BITS;
}

function listAdd(run: usize, list: u32, lane: u32, p: usize): void {
  const head = run + list;
  const next = load<u32>(head);
  store<u32>(p, list, LANE_LIST);
  store<u32>(p, next, LANE_NEXT);
  store<u32>(p, 0, LANE_PREVIOUS);
  if (next) store<u32>(laneAt(next), lane, LANE_PREVIOUS);
  store<u32>(head, lane);
  if (list == <u32>RUN_PARTIAL) countPartials(run, 1);
}

function listRemove(run: usize, p: usize): void {
  const list = load<u32>(p, LANE_LIST);
  const next = load<u32>(p, LANE_NEXT);
  const previous = load<u32>(p, LANE_PREVIOUS);
  if (next) store<u32>(laneAt(next), previous, LANE_PREVIOUS);
  if (previous) store<u32>(laneAt(previous), next, LANE_NEXT);
  else store<u32>(run + list, next);
  if (list == <u32>RUN_PARTIAL) countPartials(run, -1);
}

function countPartials(run: usize, more: i32): void {
  store<u32>(run, load<u32>(run, RUN_PARTIALS) + more, RUN_PARTIALS);
  store<u32>(run, 0, RUN_SEATED);
}

/** An empty lane; 0 when there is no room. */
export function laneNew(run: u32, holder: u32): u32 {
  if (!tableReserve(lanes, 1)) return 0;
  const id = slabTake(laneSlab);
  if (!id) return 0;
  const p = laneAt(id);
  memory.fill(p, 0, LANE_BYTES);
  store<u32>(p, run);
  store<u32>(p, holder, 4);
  const slot = holderSlot(holder);
  slotBytes = max(slotBytes, bytesToReach(slot));
  const head = slotAt(slot);
  const next = load<u32>(head);
  store<u32>(p, next, LANE_RANK_NEXT);
  if (next) store<u32>(laneAt(next), id, LANE_RANK_PREVIOUS);
  store<u32>(head, id);
  tablePut(lanes, laneKey(run, holder), id);
  listAdd(runAt(run), <u32>(holder >> SLOT_BITS ? RUN_LOWER : RUN_PARTIAL), id, p);
  return id;
}

/** Takes an empty lane out of every list; its run may be left without lanes. */
export function laneFree(id: u32): void {
  const p = laneAt(id);
  const run = runAt(laneRun(p));
  const slot = holderSlot(laneHolder(p));
  if (laneIsFull(p)) setRemove(run + RUN_SET, slot);
  listRemove(run, p);
  const next = load<u32>(p, LANE_RANK_NEXT);
  const previous = load<u32>(p, LANE_RANK_PREVIOUS);
  if (next) store<u32>(laneAt(next), previous, LANE_RANK_PREVIOUS);
  if (previous) store<u32>(laneAt(previous), next, LANE_RANK_NEXT);
  else store<u32>(slotAt(slot), next);
  tableDrop(lanes, laneKey(laneRun(p), laneHolder(p)), id);
  store<u32>(p, 0, LANE_HELD);
  slabGive(laneSlab, id);
}

/** Moves a partial lane that covers its run to the full ones; where the set finds no room it stays, which only costs time. */
export function lanePromote(id: u32): void {
  const p = laneAt(id);
  const run = runAt(laneRun(p));
  if (!setAdd(run + RUN_SET, laneHolder(p))) return;
  listRemove(run, p);
  listAdd(run, <u32>RUN_FULL, id, p);
}

/** Moves a full lane to the partial ones. */
export function laneDemote(id: u32): void {
  const p = laneAt(id);
  const run = runAt(laneRun(p));
  setRemove(run + RUN_SET, laneHolder(p));
  listRemove(run, p);
  listAdd(run, <u32>RUN_PARTIAL, id, p);
}
