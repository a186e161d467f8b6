// Chunks: which blocks of a lane are held and, in a pool of foreign names, what the engine calls
// them. A chunk never moves, so a name's position (chunk and bit) stays good for its life.
//
//   chunk, foreign names 256 B   | header 16 B | name u64 × 30, for bits 2..31 |
//   chunk, own names      16 B   | header 16 B |, bits 0..31; the name is the sequence hash in the run
//   header                       | lane u32 | held mask u32 | next 21 bits, previous 21 bits, base 12 bits |
//
// The chunk of a block is the last one whose base is not above the block's offset, if it
// reaches that far. A lane's list is ascending by base and has no empty chunk.
import { slabDirectory, slabGive, slabNew, slabTake } from "../memory/slab";
import { LANE_FIRST, LANE_LAST, LANE_TOP, laneRun } from "./lanes";
import { hashAt } from "./runs";

const ID_BITS: u64 = 21;
const ID_MASK: u64 = (1 << 21) - 1;
/** Chunk ids stay below this: 2^26 positions. */
export const CHUNK_LIMIT: u32 = 1 << 21;

export let ownNames: bool = false;
/** Blocks in a chunk, and the bit of the first. */
export let chunkSpan: u32 = 30;
export let chunkLow: u32 = 2;
export let chunkBytes: u32 = 256;
export let chunkSlab: usize = 0;
let directory: usize = 0;
let pageShift: u32 = 8;
let byteShift: u32 = 8;

// The chunk used last; a store or a scan goes on from there.
let hintLane: usize = 0;
let hintChunk: u32 = 0;

export function chunksInit(own: bool): bool {
  ownNames = own;
  chunkSpan = own ? 32 : 30;
  chunkLow = own ? 0 : 2;
  chunkBytes = own ? 16 : 256;
  byteShift = own ? 4 : 8;
  pageShift = 16 - byteShift;
  hintLane = 0;
  chunkSlab = slabNew(chunkBytes);
  if (!chunkSlab) return false;
  directory = slabDirectory(chunkSlab);
  return true;
}

// @ts-ignore: decorator
@inline export function chunkAt(id: u32): usize {
  const page = <usize>load<u32>(directory + (<usize>(id >> pageShift) << 2));
  return page + (<usize>(id & ((1 << pageShift) - 1)) << byteShift);
}

// @ts-ignore: decorator
@inline export function chunkLane(p: usize): usize {
  return load<usize>(p);
}

// @ts-ignore: decorator
@inline export function chunkMask(p: usize): u32 {
  return load<u32>(p, 4);
}

// @ts-ignore: decorator
@inline export function chunkSetMask(p: usize, mask: u32): void {
  store<u32>(p, mask, 4);
}

// @ts-ignore: decorator
@inline export function chunkBase(p: usize): u32 {
  return <u32>(load<u64>(p, 8) >> (ID_BITS * 2));
}

// @ts-ignore: decorator
@inline export function chunkNext(p: usize): u32 {
  return <u32>(load<u64>(p, 8) & ID_MASK);
}

// @ts-ignore: decorator
@inline export function chunkPrevious(p: usize): u32 {
  return <u32>((load<u64>(p, 8) >> ID_BITS) & ID_MASK);
}

function setLinks(p: usize, next: u32, previous: u32, base: u32): void {
  store<u64>(p, <u64>next | (<u64>previous << ID_BITS) | (<u64>base << (ID_BITS * 2)), 8);
}

/** Position of a block: its chunk and bit. */
// @ts-ignore: decorator
@inline export function positionOf(chunk: u32, bit: u32): u32 {
  return (chunk << 5) | bit;
}

/** Offset in the run of the block at a position. */
// @ts-ignore: decorator
@inline export function offsetAt(p: usize, position: u32): u32 {
  return chunkBase(p) + (position & 31) - chunkLow;
}

/** Address of the name at a position, in a pool of foreign names. */
export function nameAddress(position: u32): usize {
  return chunkAt(position >> 5) + (<usize>(position & 31) << 3);
}

export function nameAt(position: u32): u64 {
  return ownNames ? sequenceAt(position) : load<u64>(nameAddress(position));
}

/** The sequence hash of the block at a position. */
export function sequenceAt(position: u32): u64 {
  const p = chunkAt(position >> 5);
  return hashAt(laneRun(chunkLane(p)), offsetAt(p, position));
}

/** The last chunk of a lane that begins at or before `offset`, 0 when none does. */
export function chunkBefore(lane: usize, offset: u32): u32 {
  let c = hintChunk;
  if (hintLane != lane) {
    c = offset < load<u32>(lane, LANE_TOP) >> 1 ? load<u32>(lane, LANE_FIRST) : load<u32>(lane, LANE_LAST);
    if (!c) return 0;
  }
  let p = chunkAt(c);
  while (chunkBase(p) > offset) {
    c = chunkPrevious(p);
    if (!c) return 0;
    p = chunkAt(c);
  }
  for (let next = chunkNext(p); next; next = chunkNext(p)) {
    const n = chunkAt(next);
    if (chunkBase(n) > offset) break;
    c = next;
    p = n;
  }
  hintLane = lane;
  hintChunk = c;
  return c;
}

/** Position of the block that a lane holds at `offset`, 0 when it does not hold it. */
export function positionIn(lane: usize, offset: u32): u32 {
  const c = chunkBefore(lane, offset);
  if (!c) return 0;
  const p = chunkAt(c);
  const at = offset - chunkBase(p);
  if (at >= chunkSpan) return 0;
  const bit = at + chunkLow;
  return (chunkMask(p) >> bit) & 1 ? positionOf(c, bit) : 0;
}

/** An empty chunk behind `before` (0 = in front), with this base; 0 when there is no room. */
export function chunkInsert(lane: usize, before: u32, base: u32): u32 {
  const id = slabTake(chunkSlab);
  if (!id) return 0;
  const next = before ? chunkNext(chunkAt(before)) : load<u32>(lane, LANE_FIRST);
  const p = chunkAt(id);
  store<usize>(p, lane);
  chunkSetMask(p, 0);
  setLinks(p, next, before, base);
  join(lane, before, id);
  join(lane, id, next);
  hintLane = lane;
  hintChunk = id;
  return id;
}

/** Makes `b` follow `a` in a lane's list; 0 stands for either end. */
function join(lane: usize, a: u32, b: u32): void {
  if (a) {
    const p = chunkAt(a);
    setLinks(p, b, chunkPrevious(p), chunkBase(p));
  } else store<u32>(lane, b, LANE_FIRST);
  if (b) {
    const p = chunkAt(b);
    setLinks(p, chunkNext(p), a, chunkBase(p));
  } else store<u32>(lane, a, LANE_LAST);
}

/** A chunk for `offset`, where `before` is what chunkBefore() answered and does not reach it. */
export function chunkFor(lane: usize, before: u32, offset: u32): u32 {
  let base = offset;
  if (before) base -= (offset - chunkBase(chunkAt(before))) % chunkSpan;
  // A lane often begins in the middle of its run and goes on from there.
  else if (load<u32>(lane, LANE_FIRST)) base -= offset % chunkSpan;
  return chunkInsert(lane, before, base);
}

/** Takes a chunk out of its lane and frees it. */
export function chunkRemove(id: u32): void {
  const p = chunkAt(id);
  join(chunkLane(p), chunkPrevious(p), chunkNext(p));
  hintLane = 0;
  slabGive(chunkSlab, id);
}

/** Moves the chunks from `from` to the list's end to an empty lane, `shift` blocks nearer to its start. */
export function chunksMove(from: u32, lane: usize, to: usize, shift: u32): void {
  const last = load<u32>(lane, LANE_LAST);
  join(lane, chunkPrevious(chunkAt(from)), 0);
  join(to, load<u32>(to, LANE_LAST), from);
  store<u32>(to, last, LANE_LAST);
  for (let c = from; c; ) {
    const p = chunkAt(c);
    store<usize>(p, to);
    setLinks(p, chunkNext(p), chunkPrevious(p), chunkBase(p) - shift);
    c = chunkNext(p);
  }
  hintLane = 0;
}
