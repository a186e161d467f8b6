// Lanes: one rank's holding of one run in one tier. Holders never split a run: a lane says how
// far its blocks reach without a gap (covered) and keeps the rest, holes included, in chunks.
//
//   lane 64 B   | run u32 | holder u32 | covered u32 | held u32 | top u32 | list u32 |
//               | first chunk u32 | last chunk u32 | next, previous of the run's list u32 × 2 |
//               | next, previous of the rank's list u32 × 2 | slab id u32 | - 12 B |
//
// A holder is a rank slot with its tier in the bits above 14. top is one past the last held
// block. A lane is in one of its run's lists: full (device, all blocks; its slot is in the
// run's set too), partial (device) or lower (any other tier). A lane is named by its address.
import { slabAt, slabDirectory, slabGive, slabNew, slabTake } from "../memory/slab";
import { takeZeroed } from "../memory/arena";
import { tableDrop, tableHome, tableInit, tableMask, tablePut, tableReserve, tableSlot } from "./tables";
import { RUN_FULL, RUN_LOWER, RUN_PARTIAL, RUN_PARTIALS, RUN_SEATED, RUN_SEATS, RUN_SET } from "./runs";
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
const LANE_ID: usize = 48;

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

/** The lane with a slab id, for walks over all of them. */
export function laneOfId(id: u32): usize {
  return slabAt(directory, LANE_BYTES, id);
}

// @ts-ignore: decorator
@inline export function laneRun(p: usize): usize {
  return load<usize>(p);
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
  return load<usize>(p, LANE_LIST) == RUN_PARTIAL;
}

/** True when the lane is in its run's full list. */
// @ts-ignore: decorator
@inline export function laneIsFull(p: usize): bool {
  return load<usize>(p, LANE_LIST) == RUN_FULL;
}

// @ts-ignore: decorator
@inline function laneKey(run: usize, holder: u32): u32 {
  return <u32>((((<u64>run << 16) | holder) * 0x9E3779B97F4A7C15) >> 32);
}

/** The lane of this holder on this run, 0 when there is none. */
export function laneFind(run: usize, holder: u32): usize {
  const key = laneKey(run, holder);
  const mask = tableMask(lanes);
  let i = tableHome(lanes, key);
  while (true) {
    const s = tableSlot(lanes, i);
    const lane = load<usize>(s);
    if (!lane) return 0;
    if (load<u32>(s, 4) == key && laneRun(lane) == run && laneHolder(lane) == holder) return lane;
    i = (i + 1) & mask;
  }
}

// A run with at most four partial lanes keeps | slot | covered << 14 | of each in its seats, so that
// a lookup reads no lane. Seats taken: 0 = to be filled anew, SEATS + 2 = too many lanes, else lanes + 1.
const SEATS: u32 = 4;

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
  for (let lane = load<usize>(run, RUN_PARTIAL); lane; lane = load<usize>(lane, LANE_NEXT)) {
    store<u32>(seat, laneHolder(lane) | (load<u32>(lane, LANE_COVERED) << SLOT_BITS));
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

function listAdd(run: usize, list: usize, lane: usize): void {
  const head = run + list;
  const next = load<usize>(head);
  store<usize>(lane, list, LANE_LIST);
  store<usize>(lane, next, LANE_NEXT);
  store<usize>(lane, 0, LANE_PREVIOUS);
  if (next) store<usize>(next, lane, LANE_PREVIOUS);
  store<usize>(head, lane);
  if (list == RUN_PARTIAL) countPartials(run, 1);
}

function listRemove(run: usize, lane: usize): void {
  const list = load<usize>(lane, LANE_LIST);
  const next = load<usize>(lane, LANE_NEXT);
  const previous = load<usize>(lane, LANE_PREVIOUS);
  if (next) store<usize>(next, previous, LANE_PREVIOUS);
  store<usize>(previous ? previous + LANE_NEXT : run + list, next);
  if (list == RUN_PARTIAL) countPartials(run, -1);
}

function countPartials(run: usize, more: i32): void {
  store<u32>(run, load<u32>(run, RUN_PARTIALS) + more, RUN_PARTIALS);
  store<u32>(run, 0, RUN_SEATED);
}

/** An empty lane; 0 when there is no room. */
export function laneNew(run: usize, holder: u32): usize {
  if (!tableReserve(lanes, 1)) return 0;
  const id = slabTake(laneSlab);
  if (!id) return 0;
  const lane = laneOfId(id);
  memory.fill(lane, 0, LANE_BYTES);
  store<usize>(lane, run);
  store<u32>(lane, holder, 4);
  store<u32>(lane, id, LANE_ID);
  const slot = holderSlot(holder);
  slotBytes = max(slotBytes, bytesToReach(slot));
  const head = slotAt(slot);
  const next = load<usize>(head);
  store<usize>(lane, next, LANE_RANK_NEXT);
  if (next) store<usize>(next, lane, LANE_RANK_PREVIOUS);
  store<usize>(head, lane);
  tablePut(lanes, laneKey(run, holder), lane);
  listAdd(run, holder >> SLOT_BITS ? RUN_LOWER : RUN_PARTIAL, lane);
  return lane;
}

/** Takes an empty lane out of every list; its run may be left without lanes. */
export function laneFree(lane: usize): void {
  const run = laneRun(lane);
  const slot = holderSlot(laneHolder(lane));
  if (laneIsFull(lane)) setRemove(run + RUN_SET, slot);
  listRemove(run, lane);
  const next = load<usize>(lane, LANE_RANK_NEXT);
  const previous = load<usize>(lane, LANE_RANK_PREVIOUS);
  if (next) store<usize>(next, previous, LANE_RANK_PREVIOUS);
  store<usize>(previous ? previous + LANE_RANK_NEXT : slotAt(slot), next);
  tableDrop(lanes, laneKey(run, laneHolder(lane)), lane);
  store<u32>(lane, 0, LANE_HELD);
  slabGive(laneSlab, load<u32>(lane, LANE_ID));
}

/** Moves a partial lane that covers its run to the full ones. Where the set finds no room it stays: that only costs time. */
export function lanePromote(lane: usize): void {
  const run = laneRun(lane);
  if (!setAdd(run + RUN_SET, laneHolder(lane))) return;
  listRemove(run, lane);
  listAdd(run, RUN_FULL, lane);
}

/** Moves a full lane to the partial ones. */
export function laneDemote(lane: usize): void {
  const run = laneRun(lane);
  setRemove(run + RUN_SET, laneHolder(lane));
  listRemove(run, lane);
  listAdd(run, RUN_PARTIAL, lane);
}
