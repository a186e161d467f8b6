// Removing blocks by their names, and everything a rank holds.
import { lookAhead, lookInside, WINDOW, windowHash } from "./ahead";
import { chunkAt, chunkMask, chunkRemove, nameAt, positionOf } from "./chunks";
import { countHeld, letGo, trimRun } from "./holding";
import {
  holderOf,
  LANE_FIRST,
  LANE_TOP,
  laneFree,
  laneHolder,
  laneRun,
  rankLimit,
  slotAt,
  TIERS,
} from "./lanes";
import { nameDrop, nameFind, nameHash } from "./names";
import { runFree, runIsHeld, runLength } from "./runs";

/** Names that removals did not find. */
export let indexUnknownRemoves: u64 = 0;

export function removeInit(): void {
  indexUnknownRemoves = 0;
}

/** Removes the blocks that a rank calls `names` u64[n] in one tier; answers how many it held. Each name stands for itself. */
export function indexRemove(slot: u32, tier: u32, names: usize, n: u32): u32 {
  if (slot >= rankLimit || tier >= TIERS) return 0;
  const holder = holderOf(slot, tier);
  let removed: u32 = 0;
  let open: usize = 0;
  for (let j: u32 = 0; j < n; j++) {
    const at = names + (<usize>j << 3);
    if (!(j & (WINDOW - 1))) {
      lookAhead(holder, at, min(WINDOW, n - j));
      lookInside(min(WINDOW, n - j));
    }
    const position = nameFind(windowHash(j & (WINDOW - 1)), holder, load<u64>(at));
    if (!position) {
      indexUnknownRemoves++;
      continue;
    }
    nameDrop();
    const run = letGo(position);
    removed++;
    if (!run || run == open) continue;
    // Trimming waits until the batch turns to another run: a tail goes block by block.
    if (open && runIsHeld(open)) trimRun(open);
    open = run;
  }
  if (open && runIsHeld(open)) trimRun(open);
  return removed;
}

/** Removes everything a rank holds, in all tiers; answers how many blocks. */
export function indexClearRank(slot: u32): u32 {
  if (slot >= rankLimit) return 0;
  let removed: u32 = 0;
  for (let lane = load<usize>(slotAt(slot)); lane; lane = load<usize>(slotAt(slot))) {
    const run = laneRun(lane);
    const holder = laneHolder(lane);
    const reachesEnd = load<u32>(lane, LANE_TOP) == runLength(run);
    let blocks: u32 = 0;
    for (let c = load<u32>(lane, LANE_FIRST); c; c = load<u32>(lane, LANE_FIRST)) {
      blocks += dropNames(c, holder);
      chunkRemove(c);
    }
    countHeld(holder, -(<i32>blocks));
    removed += blocks;
    laneFree(lane);
    if (!runIsHeld(run)) runFree(run);
    else if (reachesEnd) trimRun(run);
  }
  return removed;
}

/** Takes the names of a chunk out of the table. */
function dropNames(c: u32, holder: u32): u32 {
  const mask = chunkMask(chunkAt(c));
  for (let m = mask; m; m &= m - 1) {
    const name = nameAt(positionOf(c, <u32>ctz<u32>(m)));
    nameFind(nameHash(holder, name), holder, name);
    nameDrop();
  }
  return <u32>popcnt<u32>(mask);
}
