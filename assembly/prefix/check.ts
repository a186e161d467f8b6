// Checks every invariant of the index; for tests only, the kernel does not import it.
import {
  chunkAt,
  chunkBase,
  chunkLane,
  chunkLow,
  chunkMask,
  chunkNext,
  chunkPrevious,
  chunkSpan,
  nameAt,
  positionOf,
} from "./chunks";
import { heldInTier, reach } from "./holding";
import {
  LANE_COVERED,
  LANE_FIRST,
  LANE_HELD,
  LANE_LAST,
  LANE_NEXT,
  LANE_RANK_NEXT,
  LANE_TOP,
  laneFind,
  laneHolder,
  laneIsFull,
  laneIsPartial,
  laneRun,
  SLOT_BITS,
  slotAt,
  TIERS,
} from "./lanes";
import { nameFind, nameHash, namesCount } from "./names";
import {
  contentBlocks,
  hashAt,
  RUN_FULL,
  RUN_LOWER,
  RUN_PARTIAL,
  RUN_PARTIALS,
  RUN_SET,
  runCapacity,
  runFind,
  runIsHeld,
  runLength,
  runOfId,
  runSlab,
} from "./runs";
import { setBits, setHas, setTag, setWidth } from "./sets";
import { slabLive, slabTop } from "../memory/slab";

function setSize(v: u64): u32 {
  if (setTag(v) != 15) return setTag(v);
  let n: u32 = 0;
  for (let i: usize = 0; i < setWidth(v); i += 8) n += <u32>popcnt<u64>(load<u64>(setBits(v) + i));
  return n;
}

/** 0 when all is well, else the number of the invariant that is broken. */
export function indexCheck(ranks: u32): i32 {
  let content: u32 = 0;
  let live: u32 = 0;
  for (let id: u32 = 1; id < slabTop(runSlab); id++) {
    const p = runOfId(id);
    if (!runIsHeld(p)) continue;
    live++;
    const length = runLength(p);
    content += length;
    if (!length || length > runCapacity(p)) return 1;
    if (runFind(hashAt(p, 0)) != p) return 2;
    const set = load<u64>(p, RUN_SET);
    let full: u32 = 0;
    let partial: u32 = 0;
    let top: u32 = 0;
    for (let l = load<usize>(p, RUN_FULL); l; l = load<usize>(l, LANE_NEXT)) {
      full++;
      if (!laneIsFull(l) || laneRun(l) != p || load<u32>(l, LANE_COVERED) != length) return 3;
      if (laneHolder(l) >> SLOT_BITS || !setHas(set, laneHolder(l))) return 4;
      top = length;
    }
    for (let l = load<usize>(p, RUN_PARTIAL); l; l = load<usize>(l, LANE_NEXT)) {
      partial++;
      top = max(top, load<u32>(l, LANE_TOP));
      if (!laneIsPartial(l) || laneRun(l) != p || laneHolder(l) >> SLOT_BITS || setHas(set, laneHolder(l))) return 5;
    }
    for (let l = load<usize>(p, RUN_LOWER); l; l = load<usize>(l, LANE_NEXT)) {
      top = max(top, load<u32>(l, LANE_TOP));
      if (laneIsFull(l) || laneIsPartial(l) || laneRun(l) != p || !(laneHolder(l) >> SLOT_BITS)) return 6;
    }
    if (partial != load<u32>(p, RUN_PARTIALS)) return 7;
    if (full != setSize(set)) return 8;
    if (top != length) return 9;
  }
  if (live != slabLive(runSlab)) return 10;
  if (content != contentBlocks) return 11;
  let held: u32 = 0;
  for (let slot: u32 = 0; slot < ranks; slot++) {
    let blocks: u32 = 0;
    for (let l = load<usize>(slotAt(slot)); l; l = load<usize>(l, LANE_RANK_NEXT)) {
      if ((laneHolder(l) & 16383) != slot) return 12;
      if (laneFind(laneRun(l), laneHolder(l)) != l) return 13;
      let count: u32 = 0;
      let top: u32 = 0;
      let last: u32 = 0;
      for (let c = load<u32>(l, LANE_FIRST); c; c = chunkNext(chunkAt(c))) {
        const p = chunkAt(c);
        if (chunkLane(p) != l || chunkPrevious(p) != last) return 14;
        if (last && chunkBase(chunkAt(last)) >= chunkBase(p)) return 15;
        if (!chunkMask(p)) return 16;
        const next = chunkNext(p);
        const end = min(chunkBase(p) + chunkSpan, next ? chunkBase(chunkAt(next)) : <u32>-1);
        for (let m = chunkMask(p); m; m &= m - 1) {
          const bit = <u32>ctz<u32>(m);
          if (bit < chunkLow) return 17;
          top = chunkBase(p) + bit - chunkLow + 1;
          if (top > end) return 18;
          const position = positionOf(c, bit);
          const name = nameAt(position);
          if (nameFind(nameHash(laneHolder(l), name), laneHolder(l), name) != position) return 19;
          count++;
        }
        last = c;
      }
      if (last != load<u32>(l, LANE_LAST)) return 20;
      if (count != load<u32>(l, LANE_HELD) || !count) return 21;
      if (top != load<u32>(l, LANE_TOP)) return 22;
      if (reach(l, 0) != load<u32>(l, LANE_COVERED)) return 23;
      blocks += count;
    }
    if (blocks != load<u32>(slotAt(slot), 4)) return 24;
    held += blocks;
  }
  let tiers: u32 = 0;
  for (let t: u32 = 0; t < TIERS; t++) tiers += heldInTier(t);
  if (held != tiers) return 25;
  if (held != namesCount()) return 26;
  return 0;
}
