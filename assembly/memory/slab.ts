// Slabs: records of one fixed size, named by small ids, at addresses that never move.
//
//   descriptor 32 B: | directory u32 | top u32 | free u32 | live u32 | record bytes u32 | shift u32 | pages u32 | - |
//   directory: one u32 address for each page of 2^shift records
//
// Id 0 is never handed out, so it can stand for "none". A free record keeps the next free id
// in its first word; the caller clears what it needs.
import { arenaBudget, take } from "./arena";

const PAGE_BYTES: u32 = 1 << 16;

/** A new slab of records of `bytes` bytes (at least 4); 0 when there is no room. */
export function slabNew(bytes: u32): usize {
  const shift = 31 - <u32>clz<u32>(PAGE_BYTES / bytes);
  const s = take(32);
  const pages = <u32>min<u64>(arenaBudget() / ((<u64>bytes) << shift) + 2, 1 << 20);
  const dir = take(<usize>pages << 2);
  if (!s || !dir) return 0;
  store<u32>(s, <u32>dir);
  store<u32>(s, 1, 4);
  store<u32>(s, 0, 8);
  store<u32>(s, 0, 12);
  store<u32>(s, bytes, 16);
  store<u32>(s, shift, 20);
  store<u32>(s, 0, 24);
  return s;
}

/** Address of the directory: constant for the slab's life, so callers keep it in a global. */
export function slabDirectory(s: usize): usize {
  return load<u32>(s);
}

/** log2 of the records in a page, from the record size. */
// @ts-ignore: decorator
@inline export function slabShift(bytes: u32): u32 {
  return 31 - <u32>clz<u32>(PAGE_BYTES / bytes);
}

/** Address of record `id` in the slab with this directory; `bytes` is a constant at the call. */
// @ts-ignore: decorator
@inline export function slabAt(directory: usize, bytes: u32, id: u32): usize {
  const shift = slabShift(bytes);
  return <usize>load<u32>(directory + (<usize>(id >> shift) << 2)) + <usize>(id & ((1 << shift) - 1)) * bytes;
}

/** The id of a fresh record, contents undefined; 0 when there is no room. */
export function slabTake(s: usize): u32 {
  const free = load<u32>(s, 8);
  const bytes = load<u32>(s, 16);
  const shift = load<u32>(s, 20);
  const dir = <usize>load<u32>(s);
  if (free) {
    const p = <usize>load<u32>(dir + (<usize>(free >> shift) << 2)) + <usize>(free & ((1 << shift) - 1)) * bytes;
    store<u32>(s, load<u32>(p), 8);
    store<u32>(s, load<u32>(s, 12) + 1, 12);
    return free;
  }
  const id = load<u32>(s, 4);
  const page = id >> shift;
  if (page >= load<u32>(s, 24)) {
    const p = take(<usize>bytes << shift);
    if (!p) return 0;
    store<u32>(dir + (<usize>page << 2), <u32>p);
    store<u32>(s, page + 1, 24);
  }
  store<u32>(s, id + 1, 4);
  store<u32>(s, load<u32>(s, 12) + 1, 12);
  return id;
}

/** Gives a record back. */
export function slabGive(s: usize, id: u32): void {
  const bytes = load<u32>(s, 16);
  const p = slabAt(<usize>load<u32>(s), bytes, id);
  store<u32>(p, load<u32>(s, 8));
  store<u32>(s, id, 8);
  store<u32>(s, load<u32>(s, 12) - 1, 12);
}

/** Records handed out and not given back. */
export function slabLive(s: usize): u32 {
  return load<u32>(s, 12);
}

/** One past the highest id ever handed out: the end for a walk over all ids. */
export function slabTop(s: usize): u32 {
  return load<u32>(s, 4);
}

/** Makes sure that `count` records can be handed out without taking memory; false when there is no room. */
export function slabReserve(s: usize, count: u32): bool {
  const bytes = load<u32>(s, 16);
  const shift = load<u32>(s, 20);
  while ((load<u32>(s, 24) << shift) < load<u32>(s, 12) + 1 + count) {
    const p = take(<usize>bytes << shift);
    if (!p) return false;
    const page = load<u32>(s, 24);
    store<u32>(<usize>load<u32>(s) + (<usize>page << 2), <u32>p);
    store<u32>(s, page + 1, 24);
  }
  return true;
}
