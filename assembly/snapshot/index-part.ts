// The index part of a snapshot: runs and lanes as records of meaning, not of memory. All are
// little-endian, their length a multiple of 8; `bytes` counts the whole record, ≤ 33,304.
//
//   run   16 B + …  | kind 4 u32 | bytes u32 | blocks u32 | - u32 | sequence hash u64 × blocks |
//   lane  24 B + …  | kind 5 u32 | bytes u32 | slot u32 | tier u32 | first hash of its run u64 |
//                   | held bits u64 × ⌈blocks / 64⌉ | name u64 × held blocks, foreign names only |
//
// All runs come before all lanes.
import { slabReserve, slabTop } from "../memory/slab";
import {
  chunkAt,
  chunkBase,
  chunkLow,
  chunkMask,
  chunkNext,
  chunkSlab,
  chunkSpan,
  nameAddress,
  ownNames,
  positionOf,
} from "../prefix/chunks";
import { distinct } from "../prefix/distinct";
import { hold } from "../prefix/holding";
import { tableReserve } from "../prefix/tables";
import {
  holderOf,
  holderSlot,
  LANE_FIRST,
  LANE_HELD,
  laneFind,
  laneHolder,
  laneNew,
  laneOfId,
  laneRun,
  lanes,
  laneSlab,
  rankLimit,
  SLOT_BITS,
  TIERS,
} from "../prefix/lanes";
import { nameFind, nameHash, namesReserve } from "../prefix/names";
import { withinLimit } from "../prefix/reserve";
import { hashAt, RUN_MAX, runFind, runHashes, runIsHeld, runLength, runOf, runOfId, runSlab } from "../prefix/runs";
import { BAD_RECORD, MEMORY_BUDGET, OK } from "../status";

const RUN: u32 = 4;
const LANE: u32 = 5;
const RUN_HEAD: u32 = 16;
const LANE_HEAD: u32 = 24;

// The record to write next: a run, and after the last a lane.
let kind: u32 = RUN;
let next: u32 = 1;

/** Starts to write the index part. */
export function exportIndexBegin(): void {
  kind = RUN;
  next = 1;
}

/** Moves on to the next record there is, and answers its bytes; 0 when all are written. */
export function exportIndexNeeds(): u32 {
  for (; kind == RUN; next++) {
    if (next >= slabTop(runSlab)) {
      kind = LANE;
      next = 1;
      break;
    }
    const p = runOfId(next);
    if (runIsHeld(p)) return RUN_HEAD + (runLength(p) << 3);
  }
  for (; next < slabTop(laneSlab); next++) {
    const p = laneOfId(next);
    const held = load<u32>(p, LANE_HELD);
    if (!held) continue;
    return LANE_HEAD + (words(runLength(laneRun(p))) << 3) + (ownNames ? 0 : held << 3);
  }
  return 0;
}

/**
 * Writes as many whole records as fit into `capacity` bytes at `out`: the bytes written, 0 when there
 * is nothing left, MEMORY_BUDGET when not even the next one fits (exportIndexNeeds() bytes). The index
 * must not change between calls.
 */
export function exportIndexNext(out: usize, capacity: u32): i32 {
  let written: u32 = 0;
  let bytes = exportIndexNeeds();
  while (bytes && bytes <= capacity - written) {
    const at = out + written;
    store<u32>(at, kind);
    store<u32>(at, bytes, 4);
    if (kind == RUN) writeRun(at, runOfId(next));
    else writeLane(at, laneOfId(next));
    written += bytes;
    next++;
    bytes = exportIndexNeeds();
  }
  return bytes && !written ? MEMORY_BUDGET : written;
}

/** Words of held bits for so many blocks. */
function words(blocks: u32): u32 {
  return (blocks + 63) >> 6;
}

function writeRun(at: usize, p: usize): void {
  store<u64>(at, runLength(p), 8);
  memory.copy(at + RUN_HEAD, runHashes(p), <usize>runLength(p) << 3);
}

function writeLane(at: usize, p: usize): void {
  const run = laneRun(p);
  store<u32>(at, holderSlot(laneHolder(p)), 8);
  store<u32>(at, laneHolder(p) >> SLOT_BITS, 12);
  store<u64>(at, hashAt(run, 0), 16);
  const bits = at + LANE_HEAD;
  const bitBytes = <usize>words(runLength(run)) << 3;
  let name = bits + bitBytes;
  memory.fill(bits, 0, bitBytes);
  for (let c = load<u32>(p, LANE_FIRST); c; c = chunkNext(chunkAt(c))) {
    const chunk = chunkAt(c);
    for (let m = chunkMask(chunk); m; m &= m - 1) {
      const bit = <u32>ctz<u32>(m);
      const offset = chunkBase(chunk) + bit - chunkLow;
      const byte = bits + (offset >> 3);
      store<u8>(byte, load<u8>(byte) | (1 << <u8>(offset & 7)));
      if (ownNames) continue;
      store<u64>(name, load<u64>(nameAddress(positionOf(c, bit))));
      name += 8;
    }
  }
}

/**
 * Applies one record that exportIndexNext() wrote, in that order, to an index that was empty when the
 * first came. BAD_RECORD: it is not what its kind requires; MEMORY_BUDGET: no room. The index is then
 * as before.
 */
export function importIndexRecord(at: usize, bytes: u32): i32 {
  if (bytes < RUN_HEAD || bytes & 7 || load<u32>(at, 4) != bytes) return BAD_RECORD;
  if (load<u32>(at) == RUN) return importRun(at, bytes);
  if (load<u32>(at) == LANE && bytes >= LANE_HEAD) return importLane(at, bytes);
  return BAD_RECORD;
}

function importRun(at: usize, bytes: u32): i32 {
  const blocks = load<u64>(at, 8);
  if (!blocks || blocks > RUN_MAX || <u64>bytes != RUN_HEAD + (blocks << 3)) return BAD_RECORD;
  const hashes = at + RUN_HEAD;
  if (runFind(load<u64>(hashes))) return BAD_RECORD;
  const fault = distinct(false, 0, <u32>blocks, hashes);
  if (fault) return fault == MEMORY_BUDGET ? fault : BAD_RECORD;
  return runOf(hashes, <u32>blocks) ? OK : MEMORY_BUDGET;
}

function importLane(at: usize, bytes: u32): i32 {
  const slot = load<u32>(at, 8);
  const tier = load<u32>(at, 12);
  const run = runFind(load<u64>(at, 16));
  if (slot >= rankLimit || tier >= TIERS || !run) return BAD_RECORD;
  const holder = holderOf(slot, tier);
  const blocks = runLength(run);
  const bits = at + LANE_HEAD;
  const head = LANE_HEAD + (words(blocks) << 3);
  const names = at + head;
  if (bytes < head || laneFind(run, holder)) return BAD_RECORD;
  const held = heldIn(bits, blocks);
  if (!held || bytes != head + (ownNames ? 0 : held << 3)) return BAD_RECORD;
  if (!ownNames) {
    const fault = distinct(false, 0, held, names);
    if (fault) return fault == MEMORY_BUDGET ? fault : BAD_RECORD;
  }
  let name = names;
  for (let offset = nextHeld(bits, 0, blocks); offset < blocks; offset = nextHeld(bits, offset + 1, blocks)) {
    const x = ownNames ? hashAt(run, offset) : load<u64>(name);
    name += 8;
    if (nameFind(nameHash(holder, x), holder, x)) return BAD_RECORD;
  }
  if (!roomFor(holder, blocks, held, ownNames ? runHashes(run) : names)) return MEMORY_BUDGET;
  const lane = laneNew(run, holder);
  name = names;
  for (let offset = nextHeld(bits, 0, blocks); offset < blocks; offset = nextHeld(bits, offset + 1, blocks)) {
    const x = ownNames ? hashAt(run, offset) : load<u64>(name);
    name += 8;
    hold(lane, offset, x, nameHash(holder, x));
  }
  return OK;
}

/** Room for one lane with `held` of `blocks` blocks. */
function roomFor(holder: u32, blocks: u32, held: u32, names: usize): bool {
  const chunks = blocks / chunkSpan + 2;
  return (
    withinLimit(chunks) &&
    tableReserve(lanes, 1) &&
    slabReserve(laneSlab, 1) &&
    slabReserve(chunkSlab, chunks) &&
    namesReserve(holder, names, ownNames ? blocks : held)
  );
}

/** How many of the bits are set; 0 when one is set beyond `blocks`. */
function heldIn(bits: usize, blocks: u32): u32 {
  let held: u32 = 0;
  const last = words(blocks) - 1;
  for (let w: u32 = 0; w <= last; w++) held += <u32>popcnt<u64>(load<u64>(bits + (<usize>w << 3)));
  const beyond = blocks & 63 ? load<u64>(bits + (<usize>last << 3)) >> (blocks & 63) : 0;
  return beyond ? 0 : held;
}

/** The first set bit from `from` on; `blocks` when there is none. */
function nextHeld(bits: usize, from: u32, blocks: u32): u32 {
  while (from < blocks) {
    const m = load<u64>(bits + (<usize>(from >> 6) << 3)) >> (from & 63);
    if (m) return from + <u32>ctz<u64>(m);
    from = (from | 63) + 1;
  }
  return blocks;
}
