// Overlap beyond the device: for each rank the blocks that follow its device depth on the host,
// then those that follow on disk, then those held externally (counted with disk).
import { takeZeroed, take } from "../memory/arena";
import { indexOut, indexOutCount } from "./find";
import { heldInTier, reach } from "./holding";
import { holderSlot, LANE_NEXT, laneHolder, SLOT_BITS, TIERS } from "./lanes";
import { matchedRun, RUN_LOWER, runMatch } from "./runs";

/**
 * Results of indexFindLower(): | slot u32 | host blocks u32 | disk and external blocks u32 | each; a rank without
 * any is absent.
 */
export let indexLowerOut: usize = 0;
export let indexLowerCount: u32 = 0;

// For each slot: | depth reached so far u32 | 1 + its row in the results, 0 = none u32 |
let reached: usize = 0;

export function lowerInit(maxRanks: u32): bool {
  indexLowerCount = 0;
  indexLowerOut = take(<usize>maxRanks * 12);
  reached = takeZeroed(<usize>maxRanks << 3);
  return indexLowerOut != 0 && reached != 0;
}

// @ts-ignore: decorator
@inline function reachedBy(slot: u32): usize {
  return reached + (<usize>slot << 3);
}

/** After indexFind() on the same chain u64[n]: lists what lower tiers add at indexLowerOut; answers how many ranks. */
export function indexFindLower(sequences: usize, n: u32): u32 {
  indexLowerCount = 0;
  if (!(heldInTier(1) | heldInTier(2) | heldInTier(3))) return 0;
  for (let i: u32 = 0; i < indexOutCount; i++) {
    const p = indexOut + (<usize>i << 3);
    store<u32>(reachedBy(load<u32>(p)), load<u32>(p, 4));
  }
  for (let tier: u32 = 1; tier < TIERS; tier++) if (heldInTier(tier)) walk(sequences, n, tier);
  for (let i: u32 = 0; i < indexOutCount; i++) store<u64>(reachedBy(load<u32>(indexOut + (<usize>i << 3))), 0);
  for (let i: u32 = 0; i < indexLowerCount; i++) store<u64>(reachedBy(load<u32>(indexLowerOut + <usize>i * 12)), 0);
  return indexLowerCount;
}

/** Lets every rank go on through what it holds in one tier. */
function walk(sequences: usize, n: u32, tier: u32): void {
  for (let depth: u32 = 0; depth < n; ) {
    const matched = runMatch(sequences + (<usize>depth << 3), n - depth);
    if (!matched) return;
    for (let lane = load<usize>(matchedRun, RUN_LOWER); lane; lane = load<usize>(lane, LANE_NEXT)) {
      if (laneHolder(lane) >> SLOT_BITS == tier) goOn(lane, holderSlot(laneHolder(lane)), tier, depth, matched);
    }
    depth += matched;
  }
}

function goOn(lane: usize, slot: u32, tier: u32, depth: u32, matched: u32): void {
  const state = reachedBy(slot);
  const from = load<u32>(state);
  if (from < depth || from >= depth + matched) return;
  const to = depth + min(reach(lane, from - depth), matched);
  if (to == from) return;
  store<u32>(state, to);
  let row = load<u32>(state, 4);
  if (!row) {
    row = ++indexLowerCount;
    store<u32>(state, row, 4);
    const fresh = indexLowerOut + <usize>(row - 1) * 12;
    store<u32>(fresh, slot);
    store<u64>(fresh, 0, 4);
  }
  const p = indexLowerOut + <usize>(row - 1) * 12 + (tier == 1 ? 4 : 8);
  store<u32>(p, load<u32>(p) + to - from);
}
