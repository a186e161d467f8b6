// Tables from 32-bit keys to records, open addressing with backward shift on removal.
//
//   table 16 B   | slots address u32 | mask u32 | live u32 | shift u32 |
//   slot 8 B     | address of the record u32, 0 = empty | key u32 |
//
// The top bits of the key choose the home slot, so growing and shifting never read a
// record. A key may appear more than once: the caller verifies each record it meets.
import { give, takeZeroed } from "../memory/arena";

const SMALLEST: u32 = 6; // log2 of the slots a table starts with

/** Starts empty; false when there is no room. */
export function tableInit(t: usize): bool {
  store<u32>(t, 0, 8);
  return resize(t, SMALLEST, 0, 0);
}

// @ts-ignore: decorator
@inline export function tableHome(t: usize, key: u32): u32 {
  return key >> load<u32>(t, 12);
}

// @ts-ignore: decorator
@inline export function tableSlot(t: usize, i: u32): usize {
  return load<usize>(t) + (<usize>i << 3);
}

// @ts-ignore: decorator
@inline export function tableMask(t: usize): u32 {
  return load<u32>(t, 4);
}

function resize(t: usize, lg: u32, old: usize, oldSlots: u32): bool {
  const slots = takeZeroed(<usize>8 << lg);
  if (!slots) return false;
  store<usize>(t, slots);
  store<u32>(t, (1 << lg) - 1, 4);
  store<u32>(t, 32 - lg, 12);
  for (let i: u32 = 0; i < oldSlots; i++) {
    const s = old + (<usize>i << 3);
    const record = load<usize>(s);
    if (record) place(t, load<u32>(s, 4), record);
  }
  give(old, <usize>oldSlots << 3);
  return true;
}

function place(t: usize, key: u32, record: usize): void {
  const mask = tableMask(t);
  let i = tableHome(t, key);
  while (load<u32>(tableSlot(t, i))) i = (i + 1) & mask;
  const s = tableSlot(t, i);
  store<usize>(s, record);
  store<u32>(s, key, 4);
}

/** Makes room for `more` entries, above three quarters full only when memory is short; false when it cannot. */
export function tableReserve(t: usize, more: u32): bool {
  const live = <u64>load<u32>(t, 8) + more;
  const slots = <u64>tableMask(t) + 1;
  if (live << 2 <= slots * 3) return true;
  let lg = 64 - <u32>clz<u64>(slots); // one doubling
  while (live << 2 > (<u64>3) << lg) lg++;
  if (lg < 28 && resize(t, lg, load<usize>(t), <u32>slots)) return true;
  return live << 3 <= slots * 7;
}

/** Adds an entry; room was reserved before. */
export function tablePut(t: usize, key: u32, record: usize): void {
  place(t, key, record);
  store<u32>(t, load<u32>(t, 8) + 1, 8);
}

/** Removes the entry (key, record), which is present. */
export function tableDrop(t: usize, key: u32, record: usize): void {
  const mask = tableMask(t);
  let gap = tableHome(t, key);
  while (load<usize>(tableSlot(t, gap)) != record) gap = (gap + 1) & mask;
  let i = gap;
  while (true) {
    i = (i + 1) & mask;
    const s = tableSlot(t, i);
    if (!load<u32>(s)) break;
    const home = tableHome(t, load<u32>(s, 4));
    if (((i - home) & mask) < ((i - gap) & mask)) continue;
    store<u64>(tableSlot(t, gap), load<u64>(s));
    gap = i;
  }
  store<u64>(tableSlot(t, gap), 0);
  store<u32>(t, load<u32>(t, 8) - 1, 8);
}
