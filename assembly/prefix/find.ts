// Finding: how many leading blocks of a chain each rank holds on its device.
//
// The chain is walked run by run with the set of ranks that hold everything so far. A rank stays
// when it is full on the next run or covers what matches of it; else it leaves with its depth.
// The set is a set of a few (sets.ts) or, beyond four ranks, the bitset at `activeBits`.
import { take } from "../memory/arena";
import { LANE_COVERED, LANE_NEXT, laneFind, laneHolder, seatCovered, seatsOf, seatSlot, slotBytes } from "./lanes";
import { matchedRun, RUN_PARTIAL, RUN_SET, runMatch } from "./runs";
import {
  BITSET,
  mark,
  maskOf,
  setBits,
  setFirst,
  setGather,
  setHas,
  setInsert,
  setRest,
  setTag,
  setWidth,
  wordOf,
} from "./sets";

/** Results of indexFind(): | slot u32 | depth in blocks u32 | each, in no order; a rank with depth 0 is absent. */
export let indexOut: usize = 0;
export let indexOutCount: u32 = 0;

let active: u64 = 0;
let activeBits: usize = 0;
let keptBits: usize = 0;
let deepest: u32 = 0;

// Where the chain before this one left its first run, and how far from its end it left the index, in
// bytes. Chains of a pool tend to part at the same places (a system prompt, a new turn): these are read
// first, so that a chain which is not in the cache costs one wait and not three.
let firstRun: usize = 0;
let unmatched: usize = 0;
/** What was read; it is kept so that the reads are not optimised away. */
let sink: u64 = 0;

export function findInit(maxRanks: u32): bool {
  indexOut = take(<usize>maxRanks << 3);
  activeBits = take(<usize>((maxRanks + 127) >> 7) << 4);
  keptBits = take(<usize>((maxRanks + 127) >> 7) << 4);
  indexOutCount = 0;
  return indexOut != 0 && activeBits != 0 && keptBits != 0;
}

/**
 * Finds the ranks that hold leading blocks of the chain with sequence hashes u64[n] and lists them
 * at indexOut; answers the greatest depth, in blocks.
 */
export function indexFind(sequences: usize, n: u32): u32 {
  indexOutCount = 0;
  deepest = 0;
  if (!n) return 0;
  const last = <usize>(n - 1) << 3;
  sink = load<u64>(sequences + min(firstRun, last)) ^ load<u64>(sequences + last - min(unmatched, last));
  let depth = runMatch(sequences, n);
  if (!depth) return 0;
  firstRun = <usize>depth << 3;
  begin(matchedRun, depth);
  while (active && depth < n) {
    const matched = runMatch(sequences + (<usize>depth << 3), n - depth);
    if (!matched) break;
    narrow(matchedRun, depth, matched);
    depth += matched;
  }
  unmatched = <usize>(n - depth) << 3;
  if (setTag(active) == BITSET) leaveAll(depth);
  else leaveFew(depth);
  return deepest;
}

// @ts-ignore: decorator
@inline function leave(slot: u32, depth: u32): void {
  const p = indexOut + (<usize>indexOutCount << 3);
  store<u32>(p, slot);
  store<u32>(p, depth, 4);
  indexOutCount++;
}

function leaveIfAny(slot: u32, depth: u32): void {
  if (!depth) return;
  leave(slot, depth);
  deepest = max(deepest, depth);
}

/** The slots of a word leave. */
function leaveWord(word: u64, base: u32, depth: u32): void {
  for (let m = word; m; m &= m - 1) leave(base + <u32>ctz<u64>(m), depth);
}

function leaveFew(depth: u32): void {
  let x = active >> 4;
  for (let i = setTag(active); i; i--) {
    leaveIfAny(setFirst(x), depth);
    x = setRest(x);
  }
}

function leaveAll(depth: u32): void {
  deepest = max(deepest, depth);
  for (let i: usize = 0; i < slotBytes; i += 8) leaveWord(load<u64>(activeBits + i), <u32>i << 3, depth);
}

/** The active set after the first run, of which `matched` blocks match. */
function begin(run: usize, matched: u32): void {
  active = load<u64>(run, RUN_SET);
  if (setTag(active) == BITSET) {
    const width = min(setWidth(active), slotBytes);
    memory.copy(activeBits, setBits(active), width);
    memory.fill(activeBits + width, 0, slotBytes - width);
    active = BITSET;
  }
  const seats = seatsOf(run);
  for (let i = 0; i < seats; i++) join(seatSlot(run, i), seatCovered(run, i), matched);
  if (seats >= 0) return;
  for (let lane = load<usize>(run, RUN_PARTIAL); lane; lane = load<usize>(lane, LANE_NEXT)) {
    join(laneHolder(lane), load<u32>(lane, LANE_COVERED), matched);
  }
}

/** A rank that holds `covered` blocks of the first run becomes active, or leaves at once. */
function join(slot: u32, covered: u32, matched: u32): void {
  if (covered < matched) leaveIfAny(slot, covered);
  else add(slot);
}

function add(slot: u32): void {
  const count = setTag(active);
  if (count < 4) {
    active = setInsert(active, slot);
    return;
  }
  if (count == 4) {
    memory.fill(activeBits, 0, slotBytes);
    for (let x = active >> 4, i = 0; i < 4; i++, x = setRest(x)) mark(activeBits, setFirst(x));
    active = BITSET;
  }
  mark(activeBits, slot);
}

/** Keeps the ranks that hold all `matched` blocks of this run too; `depth` blocks came before it. */
function narrow(run: usize, depth: u32, matched: u32): void {
  const full = load<u64>(run, RUN_SET);
  if (setTag(active) == BITSET) narrowMany(run, full, depth, matched);
  else if (active != full) narrowFew(run, full, depth, matched);
}

function narrowFew(run: usize, full: u64, depth: u32, matched: u32): void {
  let kept: u64 = 0;
  let x = active >> 4;
  for (let i = setTag(active); i; i--) {
    const slot = setFirst(x);
    x = setRest(x);
    const reach = setHas(full, slot) ? matched : coveredBy(run, slot);
    if (reach >= matched) kept = setInsert(kept, slot);
    else leaveIfAny(slot, depth + reach);
  }
  active = kept;
}

/** How far the partial lane of a rank covers a run. */
function coveredBy(run: usize, slot: u32): u32 {
  const seats = seatsOf(run);
  for (let i = 0; i < seats; i++) if (seatSlot(run, i) == slot) return seatCovered(run, i);
  const lane = seats < 0 ? laneFind(run, slot) : 0;
  return lane ? load<u32>(lane, LANE_COVERED) : 0;
}

/** An active rank that holds `covered` blocks of this run in a partial lane is kept, or leaves. */
function keep(slot: u32, covered: u32, depth: u32, matched: u32): void {
  const p = wordOf(activeBits, slot);
  const now = load<u64>(p);
  if (!covered || !(now & maskOf(slot))) return;
  store<u64>(p, now & ~maskOf(slot));
  if (covered >= matched) mark(keptBits, slot);
  else leaveIfAny(slot, depth + covered);
}

function narrowMany(run: usize, full: u64, depth: u32, matched: u32): void {
  memory.fill(keptBits, 0, slotBytes);
  const seats = seatsOf(run);
  for (let i = 0; i < seats; i++) keep(seatSlot(run, i), seatCovered(run, i), depth, matched);
  if (seats < 0) {
    for (let lane = load<usize>(run, RUN_PARTIAL); lane; lane = load<usize>(lane, LANE_NEXT)) {
      keep(laneHolder(lane), load<u32>(lane, LANE_COVERED), depth, matched);
    }
  }
  deepest = max(deepest, depth);
  let width: usize = 0;
  if (setTag(full) == BITSET) {
    const bits = setBits(full);
    width = min(setWidth(full), slotBytes);
    for (let i: usize = 0; i < width; i += 16) {
      const now = v128.load(activeBits + i);
      const both = v128.and(now, v128.load(bits + i));
      const gone = v128.xor(now, both);
      v128.store(activeBits + i, v128.or(both, v128.load(keptBits + i)));
      if (!v128.any_true(gone)) continue;
      leaveWord(<u64>i64x2.extract_lane(gone, 0), <u32>i << 3, depth);
      leaveWord(<u64>i64x2.extract_lane(gone, 1), (<u32>i << 3) + 64, depth);
    }
  } else {
    let x = full >> 4;
    for (let i = setTag(full); i; i--) {
      const slot = setFirst(x);
      x = setRest(x);
      const p = wordOf(activeBits, slot);
      if (!(load<u64>(p) & maskOf(slot))) continue;
      store<u64>(p, load<u64>(p) & ~maskOf(slot));
      mark(keptBits, slot);
    }
  }
  for (let i = width; i < slotBytes; i += 8) {
    leaveWord(load<u64>(activeBits + i), <u32>i << 3, depth);
    store<u64>(activeBits + i, load<u64>(keptBits + i));
  }
  const few = setGather(activeBits, slotBytes, 4);
  if (few != -1) active = few;
}
