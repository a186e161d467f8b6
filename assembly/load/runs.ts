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
export const HOLDER_BYTES: usize = 16;
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
// @ts-ignore: decorator
@inline export function runAt(run: u32): usize {
  return slabAt(directory, RUN_BYTES, run);
}
// @ts-ignore: decorator
@inline export function runBlocks(run: u32): usize {
  return <usize>load<u32>(runAt(run)) << 3;
}
// @ts-ignore: decorator
@inline export function runLength(run: u32): u32 {
  return load<u32>(runAt(run), 8);
}
// @ts-ignore: decorator
@inline export function runParent(run: u32): u32 {
  return load<u32>(runAt(run), 12);
}
// @ts-ignore: decorator
@inline export function runEntries(run: u32, by: i32): void {
  const r = runAt(run);
  store<u32>(r, load<u32>(r, 28) + by, 28);
}
// @ts-ignore: decorator
@inline export function runHolders(run: u32): u32 {
  return load<u32>(runAt(run), 32);
}
// @ts-ignore: decorator
@inline export function holdersOf(run: u32): usize {
  const r = runAt(run);
  return load<u32>(r, 36) ? <usize>load<u32>(r, 40) << 3 : r + INLINE_HOLDER;
}

// ---- the table of first hashes

// @ts-ignore: decorator
@inline function bucketOf(hash: u64): usize {
  return buckets + (<usize>((hash * 0x9e3779b97f4a7c15) >> (64 - bucketBits)) << 2);
}

/** The run that starts with this hash; 0 when none does. */
export function runStarting(hash: u64): u32 {
  let run = load<u32>(bucketOf(hash));
  while (run && load<u64>(runBlocks(run)) != hash) run = load<u32>(runAt(run), 16);
  return run;
}

function enter(run: u32): void {
  const b = bucketOf(load<u64>(runBlocks(run)));
  store<u32>(runAt(run), load<u32>(b), 16);
  store<u32>(b, run);
}

function leave(run: u32): void {
  let link = bucketOf(load<u64>(runBlocks(run)));
  while (load<u32>(link) != run) link = runAt(load<u32>(link)) + 16;
  store<u32>(link, load<u32>(runAt(run), 16));
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
      const next = load<u32>(runAt(run), 16);
      enter(run);
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
  enter(run);
  widen();
  return run;
}

/**
 * Cuts a run after its first `k` blocks. The end keeps the id, so that paths that end here and
 * children stay right; answers the new run of the beginning, 0 when there is no room.
 */
export function runSplit(run: u32, k: u32): u32 {
  const holders = runHolders(run);
  const length = runLength(run);
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
  leave(run);
  const r = runAt(run);
  const h = runAt(head);
  memory.copy(h, r, RUN_BYTES);
  memory.copy(<usize>tail << 3, runBlocks(run) + (<usize>k << 3), <usize>(length - k) << 3);
  store<u32>(h, extentShrink(load<u32>(r), load<u32>(r, 4), k), 4);
  store<u32>(h, k, 8);
  store<u32>(h, 1, 20);
  store<u32>(h, run, 24);
  if (copies) {
    memory.copy(<usize>copies << 3, holdersOf(run), <usize>holders << 4);
    store<u32>(h, copyCapacity, 36);
    store<u32>(h, copies, 40);
  } else if (load<u32>(r, 36)) {
    memory.copy(h + INLINE_HOLDER, holdersOf(run), HOLDER_BYTES);
    store<u32>(h, 0, 36);
  }
  store<u32>(r, tail);
  store<u32>(r, tailCapacity, 4);
  store<u32>(r, length - k, 8);
  adopt(load<u32>(r, 12), run, -1);
  adopt(load<u32>(r, 12), head, 1);
  store<u32>(r, head, 12);
  store<u32>(r, 0, 28);
  enter(head);
  enter(run);
  widen();
  return head;
}

/** Gives the record of a run back, and its holders; length 0 tells runTidy() that it is gone. */
function forget(run: u32): void {
  const r = runAt(run);
  if (load<u32>(r, 36)) extentGive(load<u32>(r, 40), load<u32>(r, 36));
  store<u32>(r, 0, 8);
  slabGive(runs, run);
}

/** Gives back a run without holders and children; answers its parent. */
function dropRun(run: u32): u32 {
  const r = runAt(run);
  const parent = load<u32>(r, 12);
  leave(run);
  adopt(parent, run, -1);
  extentGive(load<u32>(r), load<u32>(r, 4));
  forget(run);
  return parent;
}

/**
 * After something left `run`: drops it and its ancestors while they are empty, then joins the
 * first that stays with its only child and with its parent where nothing tells them apart.
 */
export function runTidy(run: u32): void {
  if (!run || !runLength(run)) return;
  while (run && !runHolders(run) && !load<u32>(runAt(run), 20)) run = dropRun(run);
  if (!run) return;
  const child = load<u32>(runAt(run), 20) == 1 ? load<u32>(runAt(run), 24) : 0;
  if (child && joined(run, child)) run = child;
  const parent = runParent(run);
  if (parent && load<u32>(runAt(parent), 20) == 1) joined(parent, run);
}

/** Joins a run and its only child under the child's id, if the same requests cover both alike. */
function joined(run: u32, child: u32): bool {
  const r = runAt(run);
  const c = runAt(child);
  const holders = runHolders(run);
  if (load<u32>(c, 28) || holders != runHolders(child)) return false;
  const a = holdersOf(run);
  const b = holdersOf(child);
  for (let p: usize = 0; p < <usize>holders << 4; p += 8) if (load<u64>(a + p) != load<u64>(b + p)) return false;
  const front = load<u32>(r, 8);
  const back = load<u32>(c, 8);
  let start = load<u32>(r);
  let capacity = load<u32>(r, 4);
  if (capacity < front + back) {
    const from = start;
    const fromCapacity = capacity;
    start = extentTake(front + back);
    if (!start) return false;
    capacity = extentCapacity;
    leave(run);
    leave(child);
    memory.copy(<usize>start << 3, <usize>from << 3, <usize>front << 3);
    extentGive(from, fromCapacity);
  } else {
    leave(run);
    leave(child);
  }
  memory.copy((<usize>start + front) << 3, <usize>load<u32>(c) << 3, <usize>back << 3);
  extentGive(load<u32>(c), load<u32>(c, 4));
  const parent = load<u32>(r, 12);
  store<u32>(c, start);
  store<u32>(c, capacity, 4);
  store<u32>(c, front + back, 8);
  store<u32>(c, parent, 12);
  store<u32>(c, load<u32>(r, 28), 28);
  adopt(parent, run, -1);
  adopt(parent, child, 1);
  forget(run);
  enter(child);
  return true;
}
