// Room for a store, made sure of before anything is applied. While the budget is far away one
// comparison against the worst case does; near it the store is rehearsed, and what it needs is
// taken first: then nothing can fail half-way.
import { arenaReserve, arenaUntouched } from "../memory/arena";
import { slabLive, slabReserve } from "../memory/slab";
import { CHUNK_LIMIT, chunkBytes, chunkSlab, chunkSpan, ownNames, sequenceAt } from "./chunks";
import { tableMask, tableReserve } from "./tables";
import { bytesToReach, holderSlot, LANE_BYTES, laneSlab, lanes, slotBytes } from "./lanes";
import { nameFind, nameHash, namesGrowth, namesReserve } from "./names";
import { hashAt, heads, RUN_BYTES, RUN_MAX, runFind, runLength, runSlab, spareAdd, spareClear } from "./runs";

const FIXED: u64 = 5 << 18; // steps of the slabs, the name pages and the extents

/** Bytes of the untouched budget that belong to the store in progress. */
let committed: u64 = 0;

/**
 * More than storing `n` blocks for this holder can take from the arena: for each block a piece of every
 * kind, for each allocator the step by which it grows, and for each table what its growth takes.
 */
function bound(holder: u32, n: u32): u64 {
  const set = max<u64>(64, <u64>max(slotBytes, bytesToReach(holderSlot(holder))) << 1);
  const block = set * 2 + chunkBytes + LANE_BYTES + RUN_BYTES + 192;
  return <u64>(n + 2) * block + FIXED + ((<u64>tableMask(heads) + tableMask(lanes)) << 4) + namesGrowth();
}

function untouched(bytes: u64): bool {
  return arenaUntouched() >= bytes && arenaReserve(bytes);
}

/** Makes sure that so many more lanes and chunks can be had beside the store in progress. */
export function spareRoom(more: u32): bool {
  return withinLimit(more) && untouched(committed + bound(0, more));
}

/** True when so many more chunks can still be named. */
export function withinLimit(moreChunks: u32): bool {
  return <u64>slabLive(chunkSlab) + moreChunks < CHUNK_LIMIT;
}

/**
 * Makes room for `n` blocks with these sequence hashes and names, behind block `offset - 1` of
 * `run` (0 = at the root). False when there is none; nothing has changed then.
 */
export function reserveStore(holder: u32, n: u32, sequences: usize, names: usize, run: usize, offset: u32): bool {
  committed = bound(holder, n);
  if (withinLimit(n + 1) && untouched(committed)) return true;
  committed = (<u64>1) << 40;
  if (rehearse(holder, n, sequences, names, run, offset)) return true;
  spareClear();
  return false;
}

/** Ends a store: what was set aside and not used is free again. */
export function reserveEnd(): void {
  committed = 0;
  spareClear();
}

let newRuns: u32 = 0;

/** Walks the store without changing anything, and takes what it will need. */
function rehearse(holder: u32, n: u32, sequences: usize, names: usize, run: usize, offset: u32): bool {
  let pieces: u32 = 1;
  let unknown: u32 = 0;
  newRuns = 0;
  for (let j: u32 = 0; j < n; j++) {
    const o = <usize>j << 3;
    const sequence = load<u64>(sequences + o);
    if (!ownNames) {
      // A name that moves from another block frees that block: too much to foresee here.
      const name = load<u64>(names + o);
      const position = nameFind(nameHash(holder, name), holder, name);
      if (position && sequenceAt(position) != sequence) return false;
    }
    if (run && offset < runLength(run) && hashAt(run, offset) == sequence) {
      offset++;
      continue;
    }
    const known = runFind(sequence);
    if (known) {
      if (!setAside(unknown)) return false;
      unknown = 0;
      pieces++;
      offset = 1;
    } else unknown++;
    run = known;
  }
  if (!setAside(unknown)) return false;
  pieces += newRuns;
  const chunks = n / chunkSpan + (pieces << 1);
  return (
    withinLimit(chunks) &&
    slabReserve(runSlab, newRuns) &&
    slabReserve(laneSlab, pieces) &&
    slabReserve(chunkSlab, chunks) &&
    tableReserve(heads, newRuns) &&
    tableReserve(lanes, pieces) &&
    namesReserve(holder, names, n)
  );
}

/** Sets extents aside for a stretch of `blocks` unknown blocks. */
function setAside(blocks: u32): bool {
  while (blocks) {
    const capacity = spareAdd(min(blocks, RUN_MAX));
    if (!capacity) return false;
    newRuns++;
    blocks -= min(blocks, capacity);
  }
  return true;
}
