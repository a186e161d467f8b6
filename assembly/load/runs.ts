// Runs: the active prompts of all ranks as a compressed trie over sequence hashes.
//
//   run 64 B   | first block u32 | capacity u32 | length u32 | parent u32 |
//              | next u32 | children u32 | child xor u32 | entries u32 |
//              | holders u32 | holder capacity u32 | holder extent u32 | - |
//              | the only holder, when holder capacity is 0: 16 B |
//   holder 16 B, sorted by slot   | slot u32 | refs u32 | weight of each block i64 |
//   blocks     u64 sequence hashes in an extent
//   buckets    u32 a bucket: the first run whose first hash falls there, chained by `next`
//
// A sequence hash names a whole prefix, so a run is found by its first hash alone, and two chains
// that agree at one position agree before it. Runs end where a request ends or where two part.
// `refs` counts the rank's requests that cover the run; a run lives while it has holders or
// children. `child xor` over the ids of all children is the child when there is only one.
// `entries` counts paths that come in from elsewhere than the parent (prompts.ts).
import { give, take, takeZeroed } from "../memory/arena";
import { extentCapacity, extentGive, extentShrink, extentTake } from "../memory/extents";
import { slabAt, slabDirectory, slabGive, slabLive, slabNew, slabTake } from "../memory/slab";

const RUN_BYTES: u32 = 64;
const FIRST_BUCKETS: u32 = 256;
const INLINE_HOLDER: usize = 48;

let runs: usize = 0;
let directory: usize = 0;
let buckets: usize = 0;
let bucketBits: u32 = 0;

/** Starts without runs; false when there is no room. */
export function runsInit(): bool {
  runs = slabNew(RUN_BYTES);
  if (!runs) return false;
  directory = slabDirectory(runs);
  bucketBits = 31 - clz(FIRST_BUCKETS);
  buckets = takeZeroed(FIRST_BUCKETS << 2);
  return buckets != 0;
}

/** Runs in use. */
export function runCount(): u32 {
  return slabLive(runs);
}

/** Address of a run's record. */
export function runAt(run: u32): usize {
  return slabAt(directory, RUN_BYTES, run);
}
// Of a record at `r`:
// @ts-ignore: decorator
@inline export function runBlocks(r: usize): usize {
  return <usize>load<u32>(r) << 3;
}
// @ts-ignore: decorator
@inline export function runLength(r: usize): u32 {
  return load<u32>(r, 8);
}
// @ts-ignore: decorator
@inline export function runParent(r: usize): u32 {
  return load<u32>(r, 12);
}
// @ts-ignore: decorator
@inline export function runEntries(r: usize, by: i32): void {
  store<u32>(r, load<u32>(r, 28) + by, 28);
}
// @ts-ignore: decorator
@inline export function holdersOf(r: usize): usize {
  return load<u32>(r, 36) ? <usize>load<u32>(r, 40) << 3 : r + INLINE_HOLDER;
}
/** Bytes of all holders. */
// @ts-ignore: decorator
@inline export function holderBytes(r: usize): usize {
  return <usize>load<u32>(r, 32) << 4;
}

// ---- the table of first hashes

// @ts-ignore: decorator
@inline function bucketOf(hash: u64): usize {
  return buckets + (<usize>((hash * 0x9e3779b97f4a7c15) >> (64 - bucketBits)) << 2);
}

/** The run that starts with this hash; 0 when none does. */
export function runStarting(hash: u64): u32 {
  let run = load<u32>(bucketOf(hash));
  while (run) {
    const r = runAt(run);
    if (load<u64>(runBlocks(r)) == hash) break;
    run = load<u32>(r, 16);
  }
  return run;
}

function enter(run: u32, r: usize): void {
  const b = bucketOf(load<u64>(runBlocks(r)));
  store<u32>(r, load<u32>(b), 16);
  store<u32>(b, run);
}

function leave(run: u32, r: usize): void {
  let link = bucketOf(load<u64>(runBlocks(r)));
  for (let there = load<u32>(link); there != run; there = load<u32>(link)) link = runAt(there) + 16;
  store<u32>(link, load<u32>(r, 16));
}

/** Doubles the table when there are more runs than buckets; without room chains get longer. */
function widen(): void {
  const n = <u32>1 << bucketBits;
  if (slabLive(runs) <= n) return;
  const wider = takeZeroed(<usize>n << 3);
  if (!wider) return;
  const old = buckets;
  buckets = wider;
  bucketBits++;
  for (let b: u32 = 0; b < n; b++) {
    let run = load<u32>(old + (<usize>b << 2));
    while (run) {
      const r = runAt(run);
      const next = load<u32>(r, 16);
      enter(run, r);
      run = next;
    }
  }
  give(old, <usize>n << 2);
}

// ---- the trie

function adopt(parent: u32, child: u32, by: i32): void {
  if (!parent) return;
  const p = runAt(parent);
  store<u32>(p, load<u32>(p, 20) + by, 20);
  store<u32>(p, load<u32>(p, 24) ^ child, 24);
}

/** A run of the `length` hashes at `hashes`, without holders; 0 when there is no room. */
export function runNew(parent: u32, hashes: usize, length: u32): u32 {
  const run = slabTake(runs);
  if (!run) return 0;
  const start = extentTake(length);
  if (!start) {
    slabGive(runs, run);
    return 0;
  }
  const r = runAt(run);
  memory.fill(r, 0, RUN_BYTES);
  store<u32>(r, start);
  store<u32>(r, extentCapacity, 4);
  store<u32>(r, length, 8);
  store<u32>(r, parent, 12);
  memory.copy(<usize>start << 3, hashes, <usize>length << 3);
  adopt(parent, run, 1);
  enter(run, r);
  widen();
  return run;
}

/**
 * Cuts a run after its first `k` blocks. The end keeps the id, so that paths that end here and
 * children stay right; answers the new run of the beginning, 0 when there is no room.
 */
export function runSplit(run: u32, k: u32): u32 {
  const r = runAt(run);
  const holders = load<u32>(r, 32);
  const length = runLength(r);
  let copies: u32 = 0;
  let copyCapacity: u32 = 0;
  if (holders > 1) {
    copies = extentTake(holders << 1);
    if (!copies) return 0;
    copyCapacity = extentCapacity;
  }
  const tail = extentTake(length - k);
  const tailCapacity = extentCapacity;
  const head = tail ? slabTake(runs) : 0;
  if (!head) {
    if (tail) extentGive(tail, tailCapacity);
    if (copies) extentGive(copies, copyCapacity);
    return 0;
  }
  const h = runAt(head);
  const parent = runParent(r);
  leave(run, r);
  memory.copy(h, r, RUN_BYTES);
  memory.copy(<usize>tail << 3, runBlocks(r) + (<usize>k << 3), <usize>(length - k) << 3);
  store<u32>(h, extentShrink(load<u32>(r), load<u32>(r, 4), k), 4);
  store<u32>(h, k, 8);
  store<u32>(h, 1, 20);
  store<u32>(h, run, 24);
  store<u32>(h, copyCapacity, 36);
  store<u32>(h, copies, 40);
  memory.copy(holdersOf(h), holdersOf(r), <usize>holders << 4);
  store<u32>(r, tail);
  store<u32>(r, tailCapacity, 4);
  store<u32>(r, length - k, 8);
  store<u32>(r, head, 12);
  store<u32>(r, 0, 28);
  adopt(parent, run, -1);
  adopt(parent, head, 1);
  enter(head, h);
  enter(run, r);
  widen();
  return head;
}

/** Gives the record of a run back, and its holders; length 0 tells runTidy() that it is gone. */
function forget(run: u32, r: usize): void {
  if (load<u32>(r, 36)) extentGive(load<u32>(r, 40), load<u32>(r, 36));
  store<u32>(r, 0, 8);
  slabGive(runs, run);
}

/**
 * After something left `run`: drops it and its ancestors while they are empty, then joins the
 * first that stays with its only child and with its parent where nothing tells them apart.
 */
export function runTidy(run: u32): void {
  if (!run || !runLength(runAt(run))) return;
  while (run) {
    const r = runAt(run);
    if (load<u32>(r, 32) || load<u32>(r, 20)) break;
    const parent = runParent(r);
    leave(run, r);
    adopt(parent, run, -1);
    extentGive(load<u32>(r), load<u32>(r, 4));
    forget(run, r);
    run = parent;
  }
  if (!run) return;
  const child = joined(run);
  joined(runParent(runAt(child ? child : run)));
}

/**
 * Joins a run and its only child under the child's id, if the same requests cover both alike;
 * answers the child, 0 when they stay as they are.
 */
function joined(run: u32): u32 {
  if (!run) return 0;
  const r = runAt(run);
  if (load<u32>(r, 20) != 1) return 0;
  const child = load<u32>(r, 24);
  const c = runAt(child);
  if (load<u32>(c, 28) || load<u32>(r, 32) != load<u32>(c, 32)) return 0;
  const a = holdersOf(r);
  const b = holdersOf(c);
  for (let p: usize = 0, n = holderBytes(r); p < n; p += 8) if (load<u64>(a + p) != load<u64>(b + p)) return 0;
  const front = runLength(r);
  const back = runLength(c);
  const from = load<u32>(r);
  let start = from;
  let capacity = load<u32>(r, 4);
  if (capacity < front + back) {
    start = extentTake(front + back);
    if (!start) return 0;
    capacity = extentCapacity;
  }
  leave(run, r);
  leave(child, c);
  if (start != from) {
    memory.copy(<usize>start << 3, <usize>from << 3, <usize>front << 3);
    extentGive(from, load<u32>(r, 4));
  }
  memory.copy((<usize>start + front) << 3, runBlocks(c), <usize>back << 3);
  extentGive(load<u32>(c), load<u32>(c, 4));
  const parent = runParent(r);
  store<u32>(c, start);
  store<u32>(c, capacity, 4);
  store<u32>(c, front + back, 8);
  store<u32>(c, parent, 12);
  store<u32>(c, load<u32>(r, 28), 28);
  adopt(parent, run, -1);
  adopt(parent, child, 1);
  forget(run, r);
  enter(child, c);
  return child;
}
