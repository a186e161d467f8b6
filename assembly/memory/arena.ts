// The arena: one bump pointer over linear memory, with free lists by power of two.
//
//   [static data][arena start ..... in use ..... top][grown, not yet handed out][not grown]
//
// Regions are 64-byte aligned and rounded up to a power of two of at least 64 bytes, so a
// table that doubles gives its old half back to whoever asks for that size next. The budget
// caps `top`; take() answers 0 when the budget or the engine refuses, and never traps. While
// cache contents are stored the cap is an eighth lower, so that they never crowd out requests.

const SMALLEST: u32 = 6; // log2 of the smallest region
const CLASSES: u32 = 33;
const PAGE_SHIFT: u32 = 16;
/** Growth step: a quarter of the current size, at most this many pages (32 MiB). */
const GROW_CAP: i32 = 512;

const freeLists: usize = memory.data(CLASSES << 2, 8);
let start: usize = 0;
let top: u64 = 0;
let limit: u64 = 0;
let budget: u64 = 0;

/**
 * Starts an arena. `from` is 0 for the end of the static data, or an address beyond it
 * (tests place the arena above 2 GiB). `bytes` is the budget, counted from the start.
 */
export function arenaInit(from: usize, bytes: u64): void {
  const base = from > __heap_base ? from : __heap_base;
  start = (base + 63) & ~63;
  top = start;
  budget = min<u64>(bytes, (<u64>1 << 32) - start);
  arenaFavour(false);
  memory.fill(freeLists, 0, CLASSES << 2);
}

// @ts-ignore: decorator
@inline function classOf(bytes: usize): u32 {
  return bytes <= 64 ? SMALLEST : 32 - <u32>clz<u32>(<u32>bytes - 1);
}

function grown(end: u64): bool {
  const have = memory.size();
  const need = <i32>((end + 0xffff) >> PAGE_SHIFT) - have;
  if (need <= 0) return true;
  const step = max(need, min(have >> 2, GROW_CAP));
  return memory.grow(step) >= 0 || memory.grow(need) >= 0;
}

/** A region of at least `bytes` bytes, contents undefined; 0 when there is no room. */
export function take(bytes: usize): usize {
  const c = classOf(bytes);
  const head = freeLists + (<usize>c << 2);
  const free = <usize>load<u32>(head);
  const size: u64 = (<u64>1) << c;
  if (free) {
    store<u32>(head, load<u32>(free));
    return free;
  }
  const end = top + size;
  if (end > limit || !grown(end)) return 0;
  const p = <usize>top;
  top = end;
  return p;
}

/** As take(), filled with zeros. */
export function takeZeroed(bytes: usize): usize {
  const p = take(bytes);
  if (p) memory.fill(p, 0, bytes);
  return p;
}

/** Gives a region back; `bytes` as it was asked for. */
export function give(p: usize, bytes: usize): void {
  if (!p) return;
  const c = classOf(bytes);
  const head = freeLists + (<usize>c << 2);
  store<u32>(p, load<u32>(head));
  store<u32>(head, <u32>p);
}

/** Grows memory so that `bytes` more can be handed out without growing on the request path. */
export function arenaReserve(bytes: u64): bool {
  return grown(min<u64>(top + bytes, limit));
}

/** Bytes between the arena's start and its top: everything in use, slack and free lists included. */
export function arenaInUse(): u64 {
  return top - <u64>start;
}

/** Bytes that nobody has been given yet. */
export function arenaUntouched(): u64 {
  return limit > top ? limit - top : 0;
}

/** The budget in bytes. */
export function arenaBudget(): u64 {
  return budget;
}

/** Lowers the cap by an eighth for what must leave room to others, or lifts it again. */
export function arenaFavour(others: bool): void {
  limit = <u64>start + budget - (others ? budget >> 3 : 0);
}
