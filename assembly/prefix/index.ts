// The prefix index of a pool: which rank holds which blocks, exactly, holes included.
//
//   heads (first hash → run) ─ run: hashes, full set, lists of lanes
//   lanes ((run, holder) → lane) ─ lane: coverage, chunks
//   names ((holder, engine name) → position in a chunk ─ lane ─ run)
//
// content is shared (runs.ts), holding is per rank and tier (lanes.ts, chunks.ts, holding.ts).
import { extentWords } from "../memory/extents";
import { slabLive } from "../memory/slab";
import { chunkBytes, chunksInit, chunkSlab } from "./chunks";
import { findInit } from "./find";
import { holdingInit } from "./holding";
import { tableMask } from "./tables";
import { LANE_BYTES, lanes, lanesInit, laneSlab, rankLimit, slotAt, SLOT_LIMIT } from "./lanes";
import { lowerInit } from "./lower";
import { namesBytes, namesInit } from "./names";
import { removeInit } from "./remove";
import { heads, RUN_BYTES, runSlab, runsInit } from "./runs";

export { duplicateBlocks as indexDuplicates, heldInTier as indexHeld } from "./holding";
export { indexFind, indexOut, indexOutCount } from "./find";
export { indexFindLower, indexLowerCount, indexLowerOut } from "./lower";
export { indexClearRank, indexRemove, indexUnknownRemoves } from "./remove";
export { contentBlocks as indexContent } from "./runs";
export { indexStore, indexStoreSequence } from "./store";

/**
 * Starts an empty index in an arena with extents. With `ownNames` a block's name is its sequence
 * hash and is not kept. `maxRanks` ≤ 16,384 slots exist. False when there is no room.
 */
export function indexInit(ownNames: bool, maxRanks: u32): bool {
  if (!maxRanks || maxRanks > SLOT_LIMIT) return false;
  holdingInit();
  removeInit();
  return (
    runsInit() &&
    lanesInit(maxRanks) &&
    chunksInit(ownNames) &&
    namesInit() &&
    findInit(maxRanks) &&
    lowerInit(maxRanks)
  );
}

/** Blocks that the rank of a slot holds, all tiers together. */
export function indexBlocksOf(slot: u32): u32 {
  return slot < rankLimit ? load<u32>(slotAt(slot), 4) : 0;
}

/** Runs of content. */
export function indexRuns(): u32 {
  return slabLive(runSlab);
}

/** Lanes: pairs of a run and one rank's tier that holds blocks of it. */
export function indexLanes(): u32 {
  return slabLive(laneSlab);
}

/** Bytes that the content takes now, free lists and tables' slack included, unused budget not. */
export function indexBytes(): u64 {
  const records =
    <u64>slabLive(runSlab) * RUN_BYTES + <u64>slabLive(laneSlab) * LANE_BYTES + <u64>slabLive(chunkSlab) * chunkBytes;
  const tables = (<u64>(tableMask(heads) + 1) << 3) + (<u64>(tableMask(lanes) + 1) << 3);
  return ((<u64>extentWords) << 3) + records + tables + namesBytes;
}
