// Removing blocks by their names, and everything a rank holds.
import { lookAhead, lookInside, WINDOW, windowHash } from "./ahead";
import { chunkAt, chunkMask, nameAt, positionOf } from "./chunks";
import { letGo, trimRun } from "./holding";
import { holderOf, LANE_HELD, LANE_LAST, laneHolder, rankLimit, slotAt, TIERS } from "./lanes";
import { nameDrop, nameFind, nameHash } from "./names";
import { runIsHeld } from "./runs";

/** Names that removals did not find. */
export let indexUnknownRemoves: u64 = 0;

export function removeInit(): void {
  indexUnknownRemoves = 0;
}

/**
 * Removes the blocks that a rank calls `names` u64[n] in one tier; answers how many it held. Each name
 * stands for itself: an unknown one is counted and the rest goes on.
 */
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
  const blocks = load<u32>(slotAt(slot), 4);
  for (let lane = load<usize>(slotAt(slot)); lane; lane = load<usize>(slotAt(slot))) clearLane(lane);
  return blocks;
}

/** Removes all blocks of a lane, from its end; that frees it. */
function clearLane(lane: usize): void {
  const holder = laneHolder(lane);
  let open: usize = 0;
  for (let left = load<u32>(lane, LANE_HELD); left; left--) {
    const c = load<u32>(lane, LANE_LAST);
    const position = positionOf(c, 31 - <u32>clz<u32>(chunkMask(chunkAt(c))));
    const name = nameAt(position);
    nameFind(nameHash(holder, name), holder, name);
    nameDrop();
    const run = letGo(position);
    if (run) open = run;
  }
  if (open && runIsHeld(open)) trimRun(open);
}
