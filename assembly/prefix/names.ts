// Names: (holder, engine name) → position, without keeping the name itself: a tag narrows the
// search and the name in the chunk decides.
//
//   partition 32 B   | groups u32 | used u32 | gone u32 | page list u32 | expected u32 | - 12 B |
//   page list        | page address u32 × capacity |, capacity a power of two from 16
//   page 480 B       | group × 6 |
//   group 80 B       | tag u8 × 16 | entry u32 × 16 |
//   entry            | 6 more tag bits | position 26 bits |
//
// Tag byte 0 is empty, 1 is gone. The 14-bit tag alone chooses the home group (tag × groups >> 14),
// so a partition grows page by page without reading a name.
import { arenaBudget, give, take, takeZeroed } from "../memory/arena";
import { chunkAt, chunkLane, nameAt } from "./chunks";
import { laneHolder } from "./lanes";

const PARTITION_BYTES: usize = 32;
const USED: usize = 4;
const GONE: usize = 8;
const PAGES: usize = 12;
const EXPECTED: usize = 16;
const GROUPS_IN_PAGE: u32 = 6;
const GROUP_BYTES: usize = 80;
const PAGE_BYTES: usize = 480;
const REGION_BYTES: usize = 1 << 16;
const POSITION: u32 = (1 << 26) - 1;
/** Entries of a group of 16 that may be used or gone before a partition grows. */
const LOAD: u32 = 15;
/** A partition has at most so many pages: 1.5 million names. */
const MOST_PAGES: u32 = 16000;

let partitions: usize = 0;
let partitionBits: u32 = 0;
let freePages: usize = 0;
/** Bytes in pages, free ones included. */
export let namesBytes: u64 = 0;

// Tags and positions of the partition that is being placed anew: | tag u32 | position u32 | each.
let scratch: usize = 0;
let scratchEntries: u32 = 0;

// What the last search found: its group, index and partition.
let foundGroup: usize = 0;
let foundIndex: usize = 0;
let foundPartition: usize = 0;
// After a search in vain: the hash, and a group with a free entry for it (0 = none known).
let openHash: u64 = 0;
let openGroup: usize = 0;

export function namesInit(): bool {
  // A partition of 16,384 names is still placed anew within a fraction of a millisecond.
  const most = min<u64>(arenaBudget() >> 4, <u64>POSITION + 1) >> 14;
  partitionBits = max<u32>(6, 64 - <u32>clz<u64>(most >> 1));
  freePages = 0;
  namesBytes = 0;
  scratch = 0;
  scratchEntries = 0;
  openGroup = 0;
  partitions = takeZeroed(PARTITION_BYTES << partitionBits);
  return partitions != 0;
}

export function nameHash(holder: u32, name: u64): u64 {
  let x = name ^ (<u64>(holder + 1) * 0x9E3779B97F4A7C15);
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93;
  x ^= x >> 29;
  x *= 0xD6E8FEB86659FD93;
  return x ^ (x >> 32);
}

// @ts-ignore: decorator
@inline function partitionOf(hash: u64): usize {
  return partitions + (<usize>(hash >> <u64>(64 - partitionBits)) << 5);
}

// @ts-ignore: decorator
@inline function tagOf(hash: u64): u32 {
  const tag = <u32>(hash >> 32) & 0x3fff;
  return (tag & 255) < 2 ? tag | 2 : tag;
}

// @ts-ignore: decorator
@inline function groupAt(pages: usize, g: u32): usize {
  const page = (g * 43691) >> 18; // g / 6 for g < 98,304
  return <usize>load<u32>(pages + (<usize>page << 2)) + <usize>(g - page * GROUPS_IN_PAGE) * GROUP_BYTES;
}

// @ts-ignore: decorator
@inline function matching(group: usize, tag: u32): u32 {
  return <u32>i8x16.bitmask(i8x16.eq(v128.load(group), i8x16.splat(<i8>tag)));
}

/** Entries that are empty or gone. */
// @ts-ignore: decorator
@inline function open(group: usize): u32 {
  return <u32>i8x16.bitmask(i8x16.lt_u(v128.load(group), i8x16.splat(2)));
}

// @ts-ignore: decorator
@inline function entryAt(group: usize, i: usize): usize {
  return group + 16 + (i << 2);
}

/** The position of a holder's name, 0 when it has none such. `hash` = nameHash(holder, name). */
export function nameFind(hash: u64, holder: u32, name: u64): u32 {
  const d = partitionOf(hash);
  const groups = load<u32>(d);
  openGroup = 0;
  if (!groups) return 0;
  const pages = <usize>load<u32>(d, PAGES);
  const tag = tagOf(hash);
  let g = (tag * groups) >> 14;
  let free: usize = 0;
  while (true) {
    const group = groupAt(pages, g);
    for (let m = matching(group, tag); m; m &= m - 1) {
      const i = <usize>ctz<u32>(m);
      const entry = load<u32>(entryAt(group, i));
      if (entry >> 26 != tag >> 8) continue;
      const position = entry & POSITION;
      if (nameAt(position) == name && laneHolder(chunkLane(chunkAt(position >> 5))) == holder) {
        foundGroup = group;
        foundIndex = i;
        foundPartition = d;
        return position;
      }
    }
    if (!free && open(group)) free = group;
    if (matching(group, 0)) {
      openGroup = free;
      openHash = hash;
      return 0;
    }
    if (++g == groups) g = 0;
  }
}

/** Points the entry found last at another position. */
export function nameRepoint(position: u32): void {
  const e = entryAt(foundGroup, foundIndex);
  store<u32>(e, (load<u32>(e) & ~POSITION) | position);
}

/** Removes the entry found last. */
export function nameDrop(): void {
  const d = foundPartition;
  store<u32>(d, load<u32>(d, USED) - 1, USED);
  openGroup = 0;
  // A search goes past a full group only, so elsewhere the entry may become empty at once.
  if (matching(foundGroup, 0)) store<u8>(foundGroup + foundIndex, 0);
  else {
    store<u8>(foundGroup + foundIndex, 1);
    store<u32>(d, load<u32>(d, GONE) + 1, GONE);
  }
}

/** Adds an entry for a name that is not there; false when there is no room. */
export function namePut(hash: u64, position: u32): bool {
  const d = partitionOf(hash);
  const known = openHash == hash ? openGroup : 0;
  openGroup = 0;
  const full = load<u32>(d, USED) + load<u32>(d, GONE) + 1 > load<u32>(d) * LOAD;
  if (full && !partitionMakeRoom(d, 1)) return false;
  if (known && !full) fill(d, known, tagOf(hash), position);
  else insert(d, tagOf(hash), position);
  store<u32>(d, load<u32>(d, USED) + 1, USED);
  return true;
}

function fill(d: usize, group: usize, tag: u32, position: u32): void {
  const i = <usize>ctz<u32>(open(group));
  if (load<u8>(group + i)) store<u32>(d, load<u32>(d, GONE) - 1, GONE);
  store<u8>(group + i, <u8>tag);
  store<u32>(entryAt(group, i), ((tag >> 8) << 26) | position);
}

function insert(d: usize, tag: u32, position: u32): void {
  const groups = load<u32>(d);
  const pages = <usize>load<u32>(d, PAGES);
  let g = (tag * groups) >> 14;
  while (true) {
    const group = groupAt(pages, g);
    if (open(group)) {
      fill(d, group, tag, position);
      return;
    }
    if (++g == groups) g = 0;
  }
}

/** Reads what a search for this hash will read first, so that many such reads overlap. */
// @ts-ignore: decorator
@inline export function nameTouch(hash: u64): u64 {
  const d = partitionOf(hash);
  const groups = load<u32>(d);
  if (!groups) return 0;
  const group = groupAt(load<u32>(d, PAGES), (tagOf(hash) * groups) >> 14);
  return load<u64>(group) ^ load<u64>(group, GROUP_BYTES - 8);
}

/** The first candidate position of this hash, 0 when its home group has none. */
// @ts-ignore: decorator
@inline export function nameGuess(hash: u64): u32 {
  const d = partitionOf(hash);
  const groups = load<u32>(d);
  if (!groups) return 0;
  const tag = tagOf(hash);
  const group = groupAt(load<u32>(d, PAGES), (tag * groups) >> 14);
  const m = matching(group, tag);
  return m ? load<u32>(entryAt(group, ctz<u32>(m))) & POSITION : 0;
}

function pageTake(): usize {
  if (!freePages) {
    const region = take(REGION_BYTES);
    if (!region) return 0;
    namesBytes += REGION_BYTES;
    for (let at = region; at + PAGE_BYTES <= region + REGION_BYTES; at += PAGE_BYTES) {
      store<u32>(at, <u32>freePages);
      freePages = at;
    }
  }
  const page = freePages;
  freePages = load<u32>(page);
  return page;
}

/** Bytes of a list of `pages` page addresses. */
function listBytes(pages: u32): usize {
  return pages <= 16 ? 64 : <usize>4 << (32 - <usize>clz<u32>(pages - 1));
}

function addPage(d: usize): bool {
  const groups = load<u32>(d);
  const count = groups / GROUPS_IN_PAGE;
  let list = <usize>load<u32>(d, PAGES);
  const page = count < MOST_PAGES ? pageTake() : 0;
  if (!page) return false;
  if (!count || listBytes(count) != listBytes(count + 1)) {
    const longer = take(listBytes(count + 1));
    if (!longer) {
      store<u32>(page, <u32>freePages);
      freePages = page;
      return false;
    }
    if (count) {
      memory.copy(longer, list, <usize>count << 2);
      give(list, listBytes(count));
    }
    list = longer;
    store<u32>(d, <u32>list, PAGES);
  }
  store<u32>(list + (<usize>count << 2), <u32>page);
  store<u32>(d, groups + GROUPS_IN_PAGE);
  return true;
}

/**
 * Makes room for `more` names in a partition: drops what is gone and adds pages when that is not
 * enough, a sixth at least. Where memory is short a partition may fill up to its last entry but
 * one. False when the names do not fit.
 */
function partitionMakeRoom(d: usize, more: u32): bool {
  const before = load<u32>(d);
  const used = load<u32>(d, USED);
  const enough = before * LOAD - before / 2; // else it would be full again too soon
  if (used + more > scratchEntries) {
    const bytes = <usize>8 << (32 - <usize>clz<u32>((used + more) | 4095));
    const larger = take(bytes);
    if (!larger) return used + load<u32>(d, GONE) + more < before << 4;
    give(scratch, <usize>scratchEntries << 3);
    scratch = larger;
    scratchEntries = <u32>(bytes >> 3);
  }
  const count = gather(d, before);
  if (used + more > enough) {
    const pages = before / GROUPS_IN_PAGE;
    const goal = max(pages + max<u32>(1, pages / 6), (used + more) / (GROUPS_IN_PAGE * LOAD) + 1);
    for (let k = pages; k < goal && addPage(d); ) k++;
  }
  const groups = load<u32>(d);
  const pages = <usize>load<u32>(d, PAGES);
  for (let g: u32 = 0; g < groups; g++) v128.store(groupAt(pages, g), i64x2.splat(0));
  store<u32>(d, 0, GONE);
  for (let i: u32 = 0; i < count; i++) {
    const o = scratch + (<usize>i << 3);
    insert(d, load<u32>(o), load<u32>(o, 4));
  }
  openGroup = 0;
  return used + more < groups << 4;
}

/** Copies the tags and positions of a partition to the scratch area. */
function gather(d: usize, groups: u32): u32 {
  const pages = <usize>load<u32>(d, PAGES);
  let count: u32 = 0;
  for (let g: u32 = 0; g < groups; g++) {
    const group = groupAt(pages, g);
    for (let m = open(group) ^ 0xffff; m; m &= m - 1) {
      const i = <usize>ctz<u32>(m);
      const o = scratch + (<usize>count << 3);
      const entry = load<u32>(entryAt(group, i));
      store<u32>(o, ((entry >> 26) << 8) | load<u8>(group + i));
      store<u32>(o, entry & POSITION, 4);
      count++;
    }
  }
  return count;
}

/** Bytes that growth could take beside new names: a sixth and a page for each partition, a larger scratch area. */
export function namesGrowth(): u64 {
  return namesBytes / 4 + ((<u64>1024) << partitionBits) + (<u64>scratchEntries << 4);
}

/** Makes sure that the `n` names at `names` can be added without taking memory; false when they cannot. */
export function namesReserve(holder: u32, names: usize, n: u32): bool {
  for (let j: u32 = 0; j < n; j++) {
    const d = partitionOf(nameHash(holder, load<u64>(names + (<usize>j << 3))));
    store<u32>(d, load<u32>(d, EXPECTED) + 1, EXPECTED);
  }
  let fits = true;
  for (let j: u32 = 0; j < n; j++) {
    const d = partitionOf(nameHash(holder, load<u64>(names + (<usize>j << 3))));
    const more = load<u32>(d, EXPECTED);
    store<u32>(d, 0, EXPECTED);
    if (!more || !fits) continue;
    if (load<u32>(d, USED) + load<u32>(d, GONE) + more <= load<u32>(d) * LOAD) continue;
    fits = partitionMakeRoom(d, more);
  }
  return fits;
}

/** Names in the table, for checks. */
export function namesCount(): u32 {
  let n: u32 = 0;
  for (let i: usize = 0; i < (<usize>1) << partitionBits; i++) n += load<u32>(partitions + (i << 5), USED);
  return n;
}
