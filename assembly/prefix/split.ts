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
  laneAt,
  laneFree,
  laneHolder,
  laneIsPartial,
  laneNew,
  lanePromote,
  laneRun,
  setCovered,
} from "./lanes";
import { nameHash, nameLocate, nameRepoint } from "./names";
import { spareRoom } from "./reserve";
import { RUN_FULL, RUN_LOWER, RUN_PARTIAL, RUN_PARTIALS, runAt, runCut, runHashes, runLength, runOf } from "./runs";

/** Partial lanes that a run may have. */
export const PARTIAL_LIMIT: u32 = 8;
const SAMPLE: u32 = 64;

/** Splits a run with too many partial lanes, if that helps and memory allows it. */
export function splitIfCrowded(run: u32): void {
  const p = runAt(run);
  if (load<u32>(p, RUN_PARTIALS) <= PARTIAL_LIMIT) return;
  const at = commonEnd(p);
  if (!at) return;
  let count = load<u32>(p, RUN_PARTIALS);
  for (let lane = load<u32>(p, RUN_FULL); lane; lane = load<u32>(laneAt(lane), LANE_NEXT)) count++;
  for (let lane = load<u32>(p, RUN_LOWER); lane; lane = load<u32>(laneAt(lane), LANE_NEXT)) count++;
  if (spareRoom(count, count)) splitAt(run, at);
}

/** The most frequent end of coverage among the first partial lanes; 0 when all are empty at their start. */
function commonEnd(run: usize): u32 {
  const length = runLength(run);
  let best: u32 = 0;
  let most: u32 = 0;
  let lane = load<u32>(run, RUN_PARTIAL);
  for (let i: u32 = 0; lane && i < SAMPLE; i++) {
    const end = load<u32>(laneAt(lane), LANE_COVERED);
    lane = load<u32>(laneAt(lane), LANE_NEXT);
    if (!end || end >= length || end == best) continue;
    let same: u32 = 1;
    let other = lane;
    for (let k = i + 1; other && k < SAMPLE; k++) {
      if (load<u32>(laneAt(other), LANE_COVERED) == end) same++;
      other = load<u32>(laneAt(other), LANE_NEXT);
    }
    if (same > most) {
      most = same;
      best = end;
    }
  }
  return best;
}

function splitAt(run: u32, at: u32): void {
  const p = runAt(run);
  const second = runOf(runHashes(p) + (<usize>at << 3), runLength(p) - at);
  if (!second) return;
  runCut(p, at);
  divideLanes(load<u32>(p, RUN_FULL), second, at);
  divideLanes(load<u32>(p, RUN_LOWER), second, at);
  divideLanes(load<u32>(p, RUN_PARTIAL), second, at);
}

function divideLanes(lane: u32, second: u32, at: u32): void {
  while (lane) {
    const l = laneAt(lane);
    const next = load<u32>(l, LANE_NEXT);
    if (load<u32>(l, LANE_TOP) > at) divideLane(lane, second, at);
    if (!load<u32>(l, LANE_HELD)) laneFree(lane);
    else if (load<u32>(l, LANE_COVERED) >= at) {
      setCovered(runAt(laneRun(l)), l, at);
      if (laneIsPartial(l)) lanePromote(lane);
    }
    lane = next;
  }
}

/** Moves what a lane holds from `at` on to a new lane on the second run. */
function divideLane(lane: u32, second: u32, at: u32): void {
  const l = laneAt(lane);
  const to = laneNew(second, laneHolder(l));
  const t = laneAt(to);
  const c = chunkBefore(lane, at);
  let from = c ? chunkNext(chunkAt(c)) : load<u32>(l, LANE_FIRST);
  if (c) {
    const base = chunkBase(chunkAt(c));
    if (base == at) from = c;
    else divideChunk(c, to, at - base, laneHolder(l));
  }
  if (from) chunksMove(from, lane, to, at);
  let moved: u32 = 0;
  for (let k = load<u32>(t, LANE_FIRST); k; k = chunkNext(chunkAt(k))) moved += <u32>popcnt<u32>(chunkMask(chunkAt(k)));
  store<u32>(t, moved, LANE_HELD);
  store<u32>(t, laneEnd(t), LANE_TOP);
  setCovered(runAt(second), t, reach(to, 0));
  if (laneIsPartial(t) && load<u32>(t, LANE_COVERED) == runLength(runAt(second))) lanePromote(to);
  store<u32>(l, load<u32>(l, LANE_HELD) - moved, LANE_HELD);
  store<u32>(l, laneEnd(l), LANE_TOP);
}

/** Moves the bits of a chunk from its `shift`-th block on to a chunk at the start of an empty lane. */
function divideChunk(c: u32, to: u32, shift: u32, holder: u32): void {
  const p = chunkAt(c);
  const mask = chunkMask(p);
  const low = (1 << chunkLow) - 1;
  const moved = (mask >> shift) & ~low;
  if (!moved) return;
  const target = chunkInsert(to, 0, 0);
  for (let m = moved; m; m &= m - 1) {
    const bit = <u32>ctz<u32>(m);
    const old = positionOf(c, bit + shift);
    const fresh = positionOf(target, bit);
    if (!ownNames) store<u64>(nameAddress(fresh), load<u64>(nameAddress(old)));
    nameLocate(nameHash(holder, nameAt(fresh)), old);
    nameRepoint(fresh);
  }
  chunkSetMask(chunkAt(target), moved);
  const left = mask & ((1 << (chunkLow + shift)) - 1);
  chunkSetMask(p, left);
  if (!left) chunkRemove(c);
}
