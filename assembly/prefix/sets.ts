// Sets of rank slots in one u64.
//
//   up to four     | slot 14 bits, ascending ... | count 0..4 (4 bits) |
//   more           | log2 of the bytes | address of a bitset (32 bits) | 15 (4 bits) |
//
// A bitset is as wide as its highest slot needs: 64 bytes (512 slots) to 2,048 (16,384).
import { give, take } from "../memory/arena";

export const BITSET: u32 = 15;
const SLOT_BITS: u64 = 14;
const SLOT_MASK: u32 = (1 << 14) - 1;

// @ts-ignore: decorator
@inline export function setTag(v: u64): u32 {
  return <u32>v & 15;
}

// @ts-ignore: decorator
@inline export function setBits(v: u64): usize {
  return <usize>(v >> 4);
}

/** Bytes of the bitset. */
// @ts-ignore: decorator
@inline export function setWidth(v: u64): usize {
  return <usize>1 << <usize>(v >> 36);
}

/** The first slot of `x`, a set of a few shifted right by 4 (and by 14 for each slot already read). */
// @ts-ignore: decorator
@inline export function setFirst(x: u64): u32 {
  return <u32>x & SLOT_MASK;
}

// @ts-ignore: decorator
@inline export function setRest(x: u64): u64 {
  return x >> SLOT_BITS;
}

// @ts-ignore: decorator
@inline export function wordOf(bits: usize, slot: u32): usize {
  return bits + ((slot >> 6) << 3);
}

// @ts-ignore: decorator
@inline export function maskOf(slot: u32): u64 {
  return (<u64>1) << (slot & 63);
}

// @ts-ignore: decorator
@inline export function setHas(v: u64, slot: u32): bool {
  const tag = setTag(v);
  if (tag == BITSET) {
    return <usize>(slot >> 3) < setWidth(v) && (load<u64>(wordOf(setBits(v), slot)) & maskOf(slot)) != 0;
  }
  let x = v >> 4;
  for (let i: u32 = 0; i < tag; i++) {
    if (setFirst(x) == slot) return true;
    x = setRest(x);
  }
  return false;
}

/** A set of at most three, with one slot more. */
export function setInsert(v: u64, slot: u32): u64 {
  const tag = setTag(v);
  let below: u64 = 4;
  let x = v >> 4;
  for (let i: u32 = 0; i < tag && setFirst(x) < slot; i++) {
    below += SLOT_BITS;
    x = setRest(x);
  }
  const low = v & (((<u64>1) << below) - 1);
  // A set of three has its slots below bit 46, so the rest moves up without loss.
  return (low | (<u64>slot << below) | ((v >> below) << (below + SLOT_BITS))) + 1;
}

function widthFor(slot: u32): u32 {
  return max<u32>(6, 32 - <u32>clz<u32>(slot >> 3));
}

/** Adds a slot to the set stored at `at`; false, and nothing changed, when there is no room. */
export function setAdd(at: usize, slot: u32): bool {
  const v = load<u64>(at);
  const tag = setTag(v);
  if (tag < 4) {
    store<u64>(at, setInsert(v, slot));
    return true;
  }
  let bits = setBits(v);
  if (tag != BITSET || <usize>(slot >> 3) >= setWidth(v)) {
    const last = tag == BITSET ? slot : max(slot, <u32>(v >> 46));
    const lg = widthFor(last);
    const wider = take(<usize>1 << lg);
    if (!wider) return false;
    memory.fill(wider, 0, <usize>1 << lg);
    if (tag == BITSET) memory.copy(wider, bits, setWidth(v));
    else for (let x = v >> 4, i = 0; i < 4; i++, x = setRest(x)) mark(wider, setFirst(x));
    setFree(v);
    bits = wider;
    store<u64>(at, BITSET | (<u64>bits << 4) | (<u64>lg << 36));
  }
  mark(bits, slot);
  return true;
}

// @ts-ignore: decorator
@inline export function mark(bits: usize, slot: u32): void {
  const p = wordOf(bits, slot);
  store<u64>(p, load<u64>(p) | maskOf(slot));
}

/** Removes a slot from the set stored at `at`. */
export function setRemove(at: usize, slot: u32): void {
  const v = load<u64>(at);
  const tag = setTag(v);
  if (tag == BITSET) {
    const p = wordOf(setBits(v), slot);
    store<u64>(p, load<u64>(p) & ~maskOf(slot));
    const few = setGather(setBits(v), setWidth(v), 2);
    if (few == -1) return;
    setFree(v);
    store<u64>(at, few);
    return;
  }
  let out: u64 = 0;
  let x = v >> 4;
  for (let i: u32 = 0; i < tag; i++) {
    if (setFirst(x) != slot) out = setInsert(out, setFirst(x));
    x = setRest(x);
  }
  store<u64>(at, out);
}

/** The slots of a bitset as a set of a few when there are at most `limit` (≤ 4), else −1. */
export function setGather(bits: usize, bytes: usize, limit: u32): u64 {
  let count: u32 = 0;
  for (let i: usize = 0; i < bytes; i += 8) {
    count += <u32>popcnt<u64>(load<u64>(bits + i));
    if (count > limit) return -1;
  }
  let out: u64 = count;
  let shift: u64 = 4;
  for (let i: usize = 0; i < bytes; i += 8) {
    for (let m = load<u64>(bits + i); m; m &= m - 1) {
      out |= ((<u64>i << 3) + ctz<u64>(m)) << shift;
      shift += SLOT_BITS;
    }
  }
  return out;
}

/** Gives the bitset of a set back, if it has one. */
export function setFree(v: u64): void {
  if (setTag(v) == BITSET) give(setBits(v), setWidth(v));
}
