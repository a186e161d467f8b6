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
import { nameDrop, nameFind, nameHash, namePut } from "./names";
import { RUN_FULL, RUN_LOWER, RUN_PARTIAL, runCut, runFree, runIsHeld, runLength } from "./runs";

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
export function countHeld(holder: u32, blocks: i32): void {
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
export function hold(lane: usize, offset: u32, name: u64, hash: u64): bool {
  let c = chunkBefore(lane, offset);
  if (!c || offset - chunkBase(chunkAt(c)) >= chunkSpan) {
    c = chunkFor(lane, c, offset);
    if (!c) return false;
  }
  const p = chunkAt(c);
  const bit = offset - chunkBase(p) + chunkLow;
  const position = positionOf(c, bit);
  const mask = chunkMask(p);
  if ((mask >> bit) & 1) {
    duplicateBlocks++;
    return ownNames || rename(laneHolder(lane), position, name, hash);
  }
  if (!namePut(hash, position)) {
    if (!mask) chunkRemove(c);
    return false;
  }
  if (!ownNames) store<u64>(nameAddress(position), name);
  chunkSetMask(p, mask | (1 << bit));
  store<u32>(lane, load<u32>(lane, LANE_HELD) + 1, LANE_HELD);
  countHeld(laneHolder(lane), 1);
  const top = load<u32>(lane, LANE_TOP);
  if (offset >= top) store<u32>(lane, offset + 1, LANE_TOP);
  if (offset == load<u32>(lane, LANE_COVERED)) {
    const covered = offset + 1 < top ? reach(lane, offset + 1) : offset + 1;
    const run = laneRun(lane);
    setCovered(run, lane, covered);
    if (laneIsPartial(lane) && covered == runLength(run)) lanePromote(lane);
  }
  return true;
}

function rename(holder: u32, position: u32, name: u64, hash: u64): bool {
  const at = nameAddress(position);
  const old = load<u64>(at);
  if (old == name) return true;
  if (!namePut(hash, position)) return false;
  nameFind(nameHash(holder, old), holder, old);
  nameDrop();
  store<u64>(at, name);
  return true;
}

/** Where the blocks that a lane holds from `offset` on end. */
export function reach(lane: usize, offset: u32): u32 {
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
export function letGo(position: u32): usize {
  const c = position >> 5;
  const p = chunkAt(c);
  const lane = chunkLane(p);
  const run = laneRun(lane);
  const offset = offsetAt(p, position);
  countHeld(laneHolder(lane), -1);
  const mask = chunkMask(p) & ~(1 << (position & 31));
  chunkSetMask(p, mask);
  if (!mask) chunkRemove(c);
  const left = load<u32>(lane, LANE_HELD) - 1;
  store<u32>(lane, left, LANE_HELD);
  const top = load<u32>(lane, LANE_TOP);
  const atEnd = top == runLength(run) ? run : 0;
  if (!left) {
    laneFree(lane);
    if (runIsHeld(run)) return atEnd;
    runFree(run);
    return 0;
  }
  if (offset < load<u32>(lane, LANE_COVERED)) {
    if (laneIsFull(lane)) laneDemote(lane);
    setCovered(run, lane, offset);
  }
  if (offset + 1 != top) return 0;
  store<u32>(lane, laneEnd(lane), LANE_TOP);
  return atEnd;
}

/** One past the last block that a lane holds. */
export function laneEnd(lane: usize): u32 {
  const last = load<u32>(lane, LANE_LAST);
  if (!last) return 0;
  const p = chunkAt(last);
  return chunkBase(p) + 32 - <u32>clz<u32>(chunkMask(p)) - chunkLow;
}

/** Cuts the end of a run that nobody holds. */
export function trimRun(run: usize): void {
  if (load<usize>(run, RUN_FULL)) return;
  const length = highestTop(load<usize>(run, RUN_LOWER), highestTop(load<usize>(run, RUN_PARTIAL), 0));
  if (length >= runLength(run) || !length) return;
  runCut(run, length);
  for (let lane = load<usize>(run, RUN_PARTIAL); lane; ) {
    const next = load<usize>(lane, LANE_NEXT);
    if (load<u32>(lane, LANE_COVERED) == length) lanePromote(lane);
    lane = next;
  }
}

function highestTop(lane: usize, top: u32): u32 {
  for (; lane; lane = load<usize>(lane, LANE_NEXT)) top = max(top, load<u32>(lane, LANE_TOP));
  return top;
}
