// Holding: a lane gains or loses one block. Coverage, the full set and the run's length follow.
import {
  chunkAt,
  chunkBase,
  chunkBefore,
  chunkFor,
  chunkLane,
  chunkLow,
  chunkMask,
  chunkNext,
  chunkRemove,
  chunkSetMask,
  chunkSpan,
  nameAddress,
  offsetAt,
  ownNames,
  positionOf,
} from "./chunks";
import {
  LANE_COVERED,
  LANE_HELD,
  LANE_LAST,
  LANE_NEXT,
  LANE_TOP,
  holderSlot,
  laneAt,
  laneDemote,
  laneFree,
  laneHolder,
  laneIsFull,
  laneIsPartial,
  lanePromote,
  laneRun,
  setCovered,
  SLOT_BITS,
  slotAt,
} from "./lanes";
import { nameDrop, nameHash, nameLocate, namePut } from "./names";
import {
  RUN_FULL,
  RUN_LOWER,
  RUN_PARTIAL,
  runAt,
  runCut,
  runFree,
  runIsHeld,
  runLength,
} from "./runs";

/** Held blocks of each tier. */
const held: usize = memory.data(16, 4);
/** Blocks stored again while they were held. */
export let duplicateBlocks: u64 = 0;

export function holdingInit(): void {
  memory.fill(held, 0, 16);
  duplicateBlocks = 0;
}

// @ts-ignore: decorator
@inline export function heldInTier(tier: u32): u32 {
  return load<u32>(held + (<usize>tier << 2));
}

/** Counts `blocks` more (or fewer) for a holder. */
// @ts-ignore: decorator
@inline export function countHeld(holder: u32, blocks: i32): void {
  const tier = held + (<usize>(holder >> SLOT_BITS) << 2);
  store<u32>(tier, load<u32>(tier) + blocks);
  const slot = slotAt(holderSlot(holder));
  store<u32>(slot, load<u32>(slot, 4) + blocks, 4);
}

// @ts-ignore: decorator
@inline export function countDuplicate(): void {
  duplicateBlocks++;
}

/**
 * Lets a lane hold the block at `offset` under `name` (`hash` = nameHash of it). A block held
 * already takes the new name. False when there is no room, nothing changed.
 */
export function hold(lane: u32, offset: u32, name: u64, hash: u64): bool {
  let c = chunkBefore(lane, offset);
  if (!c || offset - chunkBase(chunkAt(c)) >= chunkSpan) {
    c = chunkFor(lane, c, offset);
    if (!c) return false;
  }
  const p = chunkAt(c);
  const bit = offset - chunkBase(p) + chunkLow;
  const position = positionOf(c, bit);
  const mask = chunkMask(p);
  const l = laneAt(lane);
  if ((mask >> bit) & 1) {
    duplicateBlocks++;
    return ownNames || rename(laneHolder(l), position, name, hash);
  }
  if (!namePut(hash, position)) {
    if (!mask) chunkRemove(c);
    return false;
  }
  if (!ownNames) store<u64>(nameAddress(position), name);
  chunkSetMask(p, mask | (1 << bit));
  store<u32>(l, load<u32>(l, LANE_HELD) + 1, LANE_HELD);
  countHeld(laneHolder(l), 1);
  const top = load<u32>(l, LANE_TOP);
  if (offset >= top) store<u32>(l, offset + 1, LANE_TOP);
  if (offset == load<u32>(l, LANE_COVERED)) {
    const covered = offset + 1 < top ? reach(lane, offset + 1) : offset + 1;
    const run = runAt(laneRun(l));
    setCovered(run, l, covered);
    if (laneIsPartial(l) && covered == runLength(run)) lanePromote(lane);
  }
  return true;
}

function rename(holder: u32, position: u32, name: u64, hash: u64): bool {
  const at = nameAddress(position);
  const old = load<u64>(at);
  if (old == name) return true;
  if (!namePut(hash, position)) return false;
  nameLocate(nameHash(holder, old), position);
  nameDrop();
  store<u64>(at, name);
  return true;
}

/** Where the blocks that a lane holds from `offset` on end. */
export function reach(lane: u32, offset: u32): u32 {
  let c = chunkBefore(lane, offset);
  while (c) {
    const p = chunkAt(c);
    const next = chunkNext(p);
    const end = min(chunkBase(p) + chunkSpan, next ? chunkBase(chunkAt(next)) : <u32>-1);
    if (offset >= end) break;
    const first = offset - chunkBase(p) + chunkLow;
    offset += <u32>ctz<u32>(~(chunkMask(p) >> first));
    if (offset < end) break;
    offset = end;
    c = next && chunkBase(chunkAt(next)) == end ? next : 0;
  }
  return offset;
}

/**
 * Lets go of the block at a position whose name is out of the table already. Answers the run if
 * its end may now be held by nobody, for trimRun(); else 0.
 */
export function letGo(position: u32): u32 {
  const c = position >> 5;
  const p = chunkAt(c);
  const lane = chunkLane(p);
  const l = laneAt(lane);
  const run = laneRun(l);
  const offset = offsetAt(p, position);
  countHeld(laneHolder(l), -1);
  const mask = chunkMask(p) & ~(1 << (position & 31));
  chunkSetMask(p, mask);
  if (!mask) chunkRemove(c);
  const left = load<u32>(l, LANE_HELD) - 1;
  store<u32>(l, left, LANE_HELD);
  const top = load<u32>(l, LANE_TOP);
  const length = runLength(runAt(run));
  if (!left) {
    laneFree(lane);
    if (runIsHeld(runAt(run))) return top == length ? run : 0;
    runFree(run);
    return 0;
  }
  if (offset < load<u32>(l, LANE_COVERED)) {
    if (laneIsFull(l)) laneDemote(lane);
    setCovered(runAt(run), l, offset);
  }
  if (offset + 1 != top) return 0;
  store<u32>(l, laneEnd(l), LANE_TOP);
  return top == length ? run : 0;
}

/** One past the last block that a lane holds. */
export function laneEnd(l: usize): u32 {
  const last = load<u32>(l, LANE_LAST);
  if (!last) return 0;
  const p = chunkAt(last);
  return chunkBase(p) + 32 - <u32>clz<u32>(chunkMask(p)) - chunkLow;
}

/** Cuts the end of a run that nobody holds. */
export function trimRun(id: u32): void {
  const p = runAt(id);
  if (load<u32>(p, RUN_FULL)) return;
  const length = highestTop(load<u32>(p, RUN_LOWER), highestTop(load<u32>(p, RUN_PARTIAL), 0));
  if (length >= runLength(p) || !length) return;
  runCut(p, length);
  for (let lane = load<u32>(p, RUN_PARTIAL); lane; ) {
    const next = load<u32>(laneAt(lane), LANE_NEXT);
    if (load<u32>(laneAt(lane), LANE_COVERED) == length) lanePromote(lane);
    lane = next;
  }
}

function highestTop(lane: u32, top: u32): u32 {
  for (; lane; lane = load<u32>(laneAt(lane), LANE_NEXT)) top = max(top, load<u32>(laneAt(lane), LANE_TOP));
  return top;
}
