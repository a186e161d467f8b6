// Extents: stretches of u64 words of any length, given out by good fit and merged with their
// free neighbours when they come back (two-level segregated fit, M. Masmano et al., 2004).
//
//   free extent   | words u32 | next u32 | prev u32 | - | ... | words u32 | (the last word repeats the length)
//   in use        | the caller's words, nothing else |
//
// Where free extents begin and end is marked outside of them, one bit for each 64-byte granule:
//
//   directory     one u32 address for each window of 256 KiB of addresses
//   window 1 KiB  | first granule of a free extent: 4,096 bits | last granule: 4,096 bits |
//
// An extent is named by its start, address >> 3, which is never 0. Classes are exact below 128
// words, then sixteen for each doubling.
import { arenaBudget, give, take, takeZeroed } from "./arena";

const GRANULE: u32 = 8; // words
const CLASSES: u32 = 256;
const WINDOW_SHIFT: u32 = 15; // words in a window: 2^15 = 256 KiB
const WINDOW_BYTES: usize = 1024;
const FIRST: usize = 0;
const LAST: usize = 512;
/** The longest extent that can be asked for, in words. */
export const EXTENT_MAX: u32 = 1 << 21;

const heads: usize = memory.data(CLASSES << 2, 8);
const occupied: usize = memory.data(CLASSES >> 3, 8);
let directory: usize = 0;
let step: u32 = 0; // words taken from the arena at a time

/** Words that extentTake() really gave last: what was asked for, rounded up to 8. */
export let extentCapacity: u32 = 0;
/** Words in extents that are in use. */
export let extentWords: u32 = 0;

/** Starts empty in a fresh arena; false when there is no room. */
export function extentsInit(): bool {
  memory.fill(heads, 0, CLASSES << 2);
  memory.fill(occupied, 0, CLASSES >> 3);
  extentWords = 0;
  extentCapacity = 0;
  const budget = arenaBudget();
  step = 1 << (31 - <u32>clz<u32>(<u32>min<u64>(max<u64>(budget >> 11, 1 << 11), 1 << WINDOW_SHIFT)));
  const probe = take(64);
  if (!probe) return false;
  const windows = min<u64>(<u64>probe + budget, 1 << 32) >> (WINDOW_SHIFT + 3);
  give(probe, 64);
  directory = takeZeroed((<usize>windows + 2) << 2);
  return directory != 0;
}

// @ts-ignore: decorator
@inline function at(start: u32): usize {
  return <usize>start << 3;
}

/** The class of the largest size that is not above `words`. */
function classBelow(words: u32): u32 {
  if (words < 128) return (words >> 3) - 1;
  const lg = 31 - <u32>clz<u32>(words);
  return min(15 + ((lg - 7) << 4) + ((words >> (lg - 4)) - 16), CLASSES - 1);
}

/** The first class in which every extent has at least `words` words. */
function classAbove(words: u32): u32 {
  const c = classBelow(words);
  if (words < 128) return c;
  const lg = 31 - <u32>clz<u32>(words);
  return words & ((1 << (lg - 4)) - 1) ? c + 1 : c;
}

/** The first class from `c` on that has an extent; CLASSES when none has. */
function nextOccupied(c: u32): u32 {
  let mask = (<u64>-1) << (c & 63);
  for (let w = c >> 6; w < CLASSES >> 6; w++) {
    const m = load<u64>(occupied + (<usize>w << 3)) & mask;
    if (m) return (w << 6) + <u32>ctz(m);
    mask = -1;
  }
  return CLASSES;
}

function setOccupied(c: u32, on: bool): void {
  const p = occupied + (<usize>(c >> 6) << 3);
  const m = (<u64>1) << (c & 63);
  store<u64>(p, on ? load<u64>(p) | m : load<u64>(p) & ~m);
}

function marked(side: usize, word: u32): bool {
  const window = <usize>load<u32>(directory + (<usize>(word >> WINDOW_SHIFT) << 2));
  if (!window) return false;
  const g = (word >> 3) & 4095;
  return ((load<u8>(window + side + (g >> 3)) >> <u8>(g & 7)) & 1) != 0;
}

function flip(side: usize, word: u32): void {
  const g = (word >> 3) & 4095;
  const p = <usize>load<u32>(directory + (<usize>(word >> WINDOW_SHIFT) << 2)) + side + (g >> 3);
  store<u8>(p, load<u8>(p) ^ (1 << <u8>(g & 7)));
}

function link(start: u32, words: u32): void {
  const c = classBelow(words);
  const head = heads + (<usize>c << 2);
  const next = load<u32>(head);
  const p = at(start);
  store<u32>(p, words);
  store<u32>(p, next, 4);
  store<u32>(p, 0, 8);
  store<u32>(p + (<usize>words << 3) - 8, words);
  if (next) store<u32>(at(next), start, 8);
  else setOccupied(c, true);
  store<u32>(head, start);
  flip(FIRST, start);
  flip(LAST, start + words - GRANULE);
}

/** Takes a free extent out of its list and answers its length. */
function unlink(start: u32): u32 {
  const p = at(start);
  const words = load<u32>(p);
  const next = load<u32>(p, 4);
  const prev = load<u32>(p, 8);
  if (next) store<u32>(at(next), prev, 8);
  if (prev) store<u32>(at(prev), next, 4);
  else {
    const c = classBelow(words);
    store<u32>(heads + (<usize>c << 2), next);
    if (!next) setOccupied(c, false);
  }
  flip(FIRST, start);
  flip(LAST, start + words - GRANULE);
  return words;
}

function release(start: u32, words: u32): void {
  if (marked(FIRST, start + words)) words += unlink(start + words);
  if (marked(LAST, start - GRANULE)) {
    const before = load<u32>(at(start) - 8);
    start -= before;
    words += unlink(start);
  }
  link(start, words);
}

/** Makes the marks of [from, to) words exist. */
function openWindows(from: u32, to: u32): bool {
  for (let w = from >> WINDOW_SHIFT; w <= (to - 1) >> WINDOW_SHIFT; w++) {
    const entry = directory + (<usize>w << 2);
    if (load<u32>(entry)) continue;
    const window = takeZeroed(WINDOW_BYTES);
    if (!window) return false;
    store<u32>(entry, <u32>window);
  }
  return true;
}

function grow(words: u32): bool {
  let n = step;
  while (n < words) n <<= 1;
  const p = take(<usize>n << 3);
  if (!p) return false;
  const start = <u32>(p >> 3);
  if (!openWindows(start, start + n)) {
    give(p, <usize>n << 3);
    return false;
  }
  release(start, n);
  return true;
}

/**
 * The start of an extent of at least `words` words, contents undefined; 0 when there is no
 * room. extentCapacity is then what it really has.
 */
export function extentTake(words: u32): u32 {
  if (words > EXTENT_MAX) return 0;
  const n = max((words + GRANULE - 1) & ~(GRANULE - 1), GRANULE);
  // The newest extent of the class below often has just this length.
  let start = load<u32>(heads + (<usize>classBelow(n) << 2));
  if (!start || load<u32>(at(start)) < n) {
    const above = classAbove(n);
    let c = nextOccupied(above);
    if (c == CLASSES) {
      if (!grow(n)) return 0;
      c = nextOccupied(above);
    }
    start = load<u32>(heads + (<usize>c << 2));
  }
  const got = unlink(start);
  if (got > n) link(start + n, got - n);
  extentCapacity = n;
  extentWords += n;
  return start;
}

/** Gives an extent back, with the capacity it has. */
export function extentGive(start: u32, capacity: u32): void {
  extentWords -= capacity;
  release(start, capacity);
}

/** Gives back the end of an extent, so that `newCapacity` words (rounded up to 8) stay; answers what stays. */
export function extentShrink(start: u32, capacity: u32, newCapacity: u32): u32 {
  const n = max((newCapacity + GRANULE - 1) & ~(GRANULE - 1), GRANULE);
  if (n >= capacity) return capacity;
  extentWords -= capacity - n;
  release(start + n, capacity - n);
  return n;
}
