// Runs: content. Blocks that follow each other, whoever holds them, as one stretch of sequence
// hashes. Because hashes are chained, a run is known by its first hash and verified by its last.
//
//   run 64 B   | hashes: extent start u32 | length u16 | capacity u16 | set of full slots u64 |
//              | full lanes u32 | partial lanes u32 | lower lanes u32 | partial count u32 |
//              | last hash u64 | slab id u32 | seats taken u32 | seat u32 × 4 |
//
// A run and what a lookup needs of it are one cache line: a few partial lanes have a copy of their
// slot and coverage in the seats (lanes.ts). A branch is a run of its own, found by its first hash;
// runs do not point to each other. A run is named by its address, which never changes.
import { extentCapacity, extentGive, extentShrink, extentTake } from "../memory/extents";
import { slabAt, slabDirectory, slabGive, slabNew, slabTake } from "../memory/slab";
import { tableDrop, tableHome, tableInit, tableMask, tablePut, tableReserve, tableSlot } from "./tables";
import { setFree } from "./sets";

export const RUN_BYTES: u32 = 64;
export const RUN_SET: usize = 8;
export const RUN_FULL: usize = 16;
export const RUN_PARTIAL: usize = 20;
export const RUN_LOWER: usize = 24;
export const RUN_PARTIALS: usize = 28;
const RUN_LAST: usize = 32;
const RUN_ID: usize = 40;
export const RUN_SEATED: usize = 44;
export const RUN_SEATS: usize = 48;
/** Longest run, in blocks. */
export const RUN_MAX: u32 = 4096;

export const heads: usize = memory.data(16, 8);
export let runSlab: usize = 0;
let directory: usize = 0;

/** Distinct blocks kept, those in the middle of a run that nobody holds any more included. */
export let contentBlocks: u32 = 0;

// Extents set aside for one store when memory is short: a queue, linked through their first words.
let spareFirst: u32 = 0;
let spareLast: u32 = 0;

export function runsInit(): bool {
  runSlab = slabNew(RUN_BYTES);
  if (!runSlab || !tableInit(heads)) return false;
  directory = slabDirectory(runSlab);
  contentBlocks = 0;
  spareFirst = 0;
  return true;
}

/** The run with a slab id, for walks over all of them. */
export function runOfId(id: u32): usize {
  return slabAt(directory, RUN_BYTES, id);
}

// @ts-ignore: decorator
@inline export function runLength(p: usize): u32 {
  return load<u16>(p, 4);
}

// @ts-ignore: decorator
@inline export function runCapacity(p: usize): u32 {
  return load<u16>(p, 6);
}

/** Address of the sequence hashes. */
// @ts-ignore: decorator
@inline export function runHashes(p: usize): usize {
  return <usize>load<u32>(p) << 3;
}

// @ts-ignore: decorator
@inline export function hashAt(p: usize, offset: u32): u64 {
  return load<u64>(runHashes(p) + (<usize>offset << 3));
}

/** True for a record that stands for a run with at least one lane. */
export function runIsHeld(p: usize): bool {
  return (load<usize>(p, RUN_FULL) | load<usize>(p, RUN_PARTIAL) | load<usize>(p, RUN_LOWER)) != 0;
}

// @ts-ignore: decorator
@inline function headKey(hash: u64): u32 {
  return <u32>((hash * 0x9E3779B97F4A7C15) >> 32);
}

/** The run that begins with this hash, 0 when there is none. */
export function runFind(hash: u64): usize {
  const key = headKey(hash);
  const mask = tableMask(heads);
  let i = tableHome(heads, key);
  while (true) {
    const s = tableSlot(heads, i);
    const run = load<usize>(s);
    if (!run) return 0;
    if (load<u32>(s, 4) == key && hashAt(run, 0) == hash) return run;
    i = (i + 1) & mask;
  }
}

/** The run that runMatch() found. */
export let matchedRun: usize = 0;

/**
 * How many of the `left` hashes at `query` lie in the run that begins with the first of them; 0
 * when none does. Equal last hashes mean equal runs; else a binary search finds where they part.
 */
export function runMatch(query: usize, left: u32): u32 {
  const hash = load<u64>(query);
  const key = headKey(hash);
  const mask = tableMask(heads);
  let i = tableHome(heads, key);
  while (true) {
    const slot = tableSlot(heads, i);
    const p = load<usize>(slot);
    if (!p) return 0;
    if (load<u32>(slot, 4) == key) {
      const s = runHashes(p);
      const length = runLength(p);
      let high = min(length, left);
      matchedRun = p;
      const last = <usize>(high - 1) << 3;
      if ((high == length ? load<u64>(p, RUN_LAST) : load<u64>(s + last)) == load<u64>(query + last)) return high;
      if (load<u64>(s) == hash) {
        let low: u32 = 1;
        high--;
        while (low < high) {
          const middle = (low + high) >> 1;
          const o = <usize>middle << 3;
          if (load<u64>(s + o) == load<u64>(query + o)) low = middle + 1;
          else high = middle;
        }
        return low;
      }
    }
    i = (i + 1) & mask;
  }
}

/** Sets an extent of at most `words` words aside and answers its capacity; 0 when there is no room. */
export function spareAdd(words: u32): u32 {
  const start = extentUpTo(words);
  if (!start) return 0;
  const p = <usize>start << 3;
  store<u32>(p, 0);
  store<u32>(p, extentCapacity, 4);
  if (spareFirst) store<u32>(<usize>spareLast << 3, start);
  else spareFirst = start;
  spareLast = start;
  return extentCapacity;
}

/** Gives back what was set aside and not used. */
export function spareClear(): void {
  while (spareFirst) {
    const p = <usize>spareFirst << 3;
    const start = spareFirst;
    spareFirst = load<u32>(p);
    extentGive(start, load<u32>(p, 4));
  }
}

function extentUpTo(words: u32): u32 {
  let start = extentTake(words);
  while (!start && words > 8) {
    words >>= 1;
    start = extentTake(words);
  }
  return start;
}

/** A run of one block with room for up to `want` (at most RUN_MAX); 0 when there is no room. */
export function runNew(hash: u64, want: u32): usize {
  if (!tableReserve(heads, 1)) return 0;
  let start = spareFirst;
  let capacity: u32 = 0;
  if (start) {
    const spare = <usize>start << 3;
    spareFirst = load<u32>(spare);
    capacity = load<u32>(spare, 4);
  } else {
    start = extentUpTo(min(want, RUN_MAX));
    if (!start) return 0;
    capacity = extentCapacity;
  }
  const id = slabTake(runSlab);
  if (!id) {
    extentGive(start, capacity);
    return 0;
  }
  const p = runOfId(id);
  memory.fill(p, 0, RUN_BYTES);
  store<u32>(p, id, RUN_ID);
  store<u32>(p, start);
  store<u16>(p, 1, 4);
  store<u16>(p, <u16>capacity, 6);
  store<u64>(<usize>start << 3, hash);
  store<u64>(p, hash, RUN_LAST);
  tablePut(heads, headKey(hash), p);
  contentBlocks++;
  return p;
}

/** Forgets a run without lanes. */
export function runFree(p: usize): void {
  tableDrop(heads, headKey(hashAt(p, 0)), p);
  contentBlocks -= runLength(p);
  extentGive(load<u32>(p), runCapacity(p));
  setFree(load<u64>(p, RUN_SET));
  const id = load<u32>(p, RUN_ID);
  memory.fill(p, 0, RUN_BYTES);
  slabGive(runSlab, id);
}

/** Adds a block behind the last one; `more` blocks are expected in all. False when there is no room. */
export function runAppend(p: usize, hash: u64, more: u32): bool {
  const length = runLength(p);
  if (length == runCapacity(p)) {
    const want = min(max(length + more, length + 1 + (length >> 3)), RUN_MAX);
    const start = extentTake(want);
    if (!start) return false;
    const capacity = extentCapacity;
    memory.copy(<usize>start << 3, runHashes(p), <usize>length << 3);
    extentGive(load<u32>(p), length);
    store<u32>(p, start);
    store<u16>(p, <u16>capacity, 6);
  }
  store<u64>(runHashes(p) + (<usize>length << 3), hash);
  setLength(p, length + 1);
  contentBlocks++;
  return true;
}

function setLength(p: usize, length: u32): void {
  store<u16>(p, <u16>length, 4);
  store<u64>(p, hashAt(p, length - 1), RUN_LAST);
}

/** Cuts the blocks from `length` on. */
export function runCut(p: usize, length: u32): void {
  contentBlocks -= runLength(p) - length;
  setLength(p, length);
  runTighten(p);
}

/** A run of the `count` ≤ RUN_MAX hashes at `hashes`; 0 when there is no room. */
export function runOf(hashes: usize, count: u32): usize {
  const p = runNew(load<u64>(hashes), count);
  if (!p) return 0;
  if (runCapacity(p) < count) {
    runFree(p);
    return 0;
  }
  memory.copy(runHashes(p), hashes, <usize>count << 3);
  setLength(p, count);
  contentBlocks += count - 1;
  return p;
}

/** Gives back capacity beyond an eighth. */
export function runTighten(p: usize): void {
  const length = runLength(p);
  const capacity = runCapacity(p);
  if (length + (length >> 3) + 16 > capacity) return;
  store<u16>(p, <u16>extentShrink(load<u32>(p), capacity, length), 6);
}
