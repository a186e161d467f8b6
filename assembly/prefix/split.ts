// Splitting a run that too many ranks hold in part. Lookups read every partial lane of a run, so
// beyond a few the run is cut where most of them end: those become full on the first piece.
import {
  chunkAt,
  chunkBase,
  chunkBefore,
  chunkInsert,
  chunkLow,
  chunkMask,
  chunkNext,
  chunkRemove,
  chunkSetMask,
  chunksMove,
  nameAddress,
  nameAt,
  ownNames,
  positionOf,
} from "./chunks";
import { laneEnd, reach } from "./holding";
import {
  LANE_COVERED,
  LANE_FIRST,
  LANE_HELD,
  LANE_NEXT,
  LANE_TOP,
  laneFree,
  laneHolder,
  laneIsPartial,
  laneNew,
  lanePromote,
  laneRun,
  setCovered,
} from "./lanes";
import { nameFind, nameHash, nameRepoint } from "./names";
import { spareRoom } from "./reserve";
import { RUN_FULL, RUN_LOWER, RUN_PARTIAL, RUN_PARTIALS, runCut, runHashes, runLength, runOf } from "./runs";

/** Partial lanes that a run may have. */
export const PARTIAL_LIMIT: u32 = 8;
const SAMPLE: u32 = 64;

/** Splits a run with too many partial lanes, if that helps and memory allows it. */
export function splitIfCrowded(run: usize): void {
  if (load<u32>(run, RUN_PARTIALS) <= PARTIAL_LIMIT) return;
  const at = commonEnd(run);
  if (!at) return;
  const count = load<u32>(run, RUN_PARTIALS) + lanesIn(run + RUN_FULL) + lanesIn(run + RUN_LOWER);
  if (spareRoom(count)) splitAt(run, at);
}

function lanesIn(list: usize): u32 {
  let count: u32 = 0;
  for (let lane = load<usize>(list); lane; lane = load<usize>(lane, LANE_NEXT)) count++;
  return count;
}

/** The most frequent end of coverage among the first partial lanes; 0 when all are empty at their start. */
function commonEnd(run: usize): u32 {
  const length = runLength(run);
  let best: u32 = 0;
  let most: u32 = 0;
  let lane = load<usize>(run, RUN_PARTIAL);
  for (let i: u32 = 0; lane && i < SAMPLE; i++) {
    const end = load<u32>(lane, LANE_COVERED);
    lane = load<usize>(lane, LANE_NEXT);
    if (!end || end >= length || end == best) continue;
    let same: u32 = 1;
    let other = lane;
    for (let k = i + 1; other && k < SAMPLE; k++) {
      if (load<u32>(other, LANE_COVERED) == end) same++;
      other = load<usize>(other, LANE_NEXT);
    }
    if (same > most) {
      most = same;
      best = end;
    }
  }
  return best;
}

function splitAt(run: usize, at: u32): void {
  const second = runOf(runHashes(run) + (<usize>at << 3), runLength(run) - at);
  if (!second) return;
  divideLanes(load<usize>(run, RUN_FULL), second, at);
  divideLanes(load<usize>(run, RUN_LOWER), second, at);
  divideLanes(load<usize>(run, RUN_PARTIAL), second, at);
  runCut(run, at);
}

function divideLanes(lane: usize, second: usize, at: u32): void {
  while (lane) {
    const next = load<usize>(lane, LANE_NEXT);
    if (load<u32>(lane, LANE_TOP) > at) divideLane(lane, second, at);
    if (!load<u32>(lane, LANE_HELD)) laneFree(lane);
    else if (load<u32>(lane, LANE_COVERED) >= at) {
      setCovered(laneRun(lane), lane, at);
      if (laneIsPartial(lane)) lanePromote(lane);
    }
    lane = next;
  }
}

/** Moves what a lane holds from `at` on to a new lane on the second run. */
function divideLane(lane: usize, second: usize, at: u32): void {
  const to = laneNew(second, laneHolder(lane));
  const c = chunkBefore(lane, at);
  let from = c ? chunkNext(chunkAt(c)) : load<u32>(lane, LANE_FIRST);
  if (c) {
    const base = chunkBase(chunkAt(c));
    if (base == at) from = c;
    else divideChunk(c, to, at - base, laneHolder(lane));
  }
  if (from) chunksMove(from, lane, to, at);
  let moved: u32 = 0;
  for (let k = load<u32>(to, LANE_FIRST); k; k = chunkNext(chunkAt(k))) {
    moved += <u32>popcnt<u32>(chunkMask(chunkAt(k)));
  }
  store<u32>(to, moved, LANE_HELD);
  store<u32>(to, laneEnd(to), LANE_TOP);
  setCovered(second, to, reach(to, 0));
  if (laneIsPartial(to) && load<u32>(to, LANE_COVERED) == runLength(second)) lanePromote(to);
  store<u32>(lane, load<u32>(lane, LANE_HELD) - moved, LANE_HELD);
  store<u32>(lane, laneEnd(lane), LANE_TOP);
}

/** Moves the bits of a chunk from its `shift`-th block on to a chunk at the start of an empty lane. */
function divideChunk(c: u32, to: usize, shift: u32, holder: u32): void {
  const p = chunkAt(c);
  const mask = chunkMask(p);
  const low = (1 << chunkLow) - 1;
  const moved = (mask >> shift) & ~low;
  if (!moved) return;
  const target = chunkInsert(to, 0, 0);
  for (let m = moved; m; m &= m - 1) {
    const bit = <u32>ctz<u32>(m);
    const name = nameAt(positionOf(c, bit + shift));
    const fresh = positionOf(target, bit);
    nameFind(nameHash(holder, name), holder, name);
    nameRepoint(fresh);
    if (!ownNames) store<u64>(nameAddress(fresh), name);
  }
  chunkSetMask(chunkAt(target), moved);
  const left = mask & ((1 << (chunkLow + shift)) - 1);
  chunkSetMask(p, left);
  if (!left) chunkRemove(c);
}
