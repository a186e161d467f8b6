// Active prompts: which leading blocks of a prompt each rank is working on now, shared between
// requests (runs.ts). A request's path is named by where it ends; its parents are the way back.
//
//   piece 16 B   | last run u32 | blocks u32 | next piece u32 | - |
//
// A path is one piece, the first 16 bytes of its booking. Only hashes that are no true chain, as
// [4] beside [1, 2, 3, 4], need more: the piece of [1, 2, 3] and one that enters [4] from outside.
import { EXTENT_MAX } from "../memory/extents";
import { slabAt, slabDirectory, slabGive, slabNew, slabTake } from "../memory/slab";
import { activeColumn, deviceColumn, diskColumn, hostColumn, predictedColumn, touchedColumn } from "./columns";
import { holderPlace, runHold, runLetGo } from "./holders";
import { BELIEVED, NO_ROW, rowOf, WEIGHT_ONE } from "./ranks";
import {
  holderBytes,
  holdersOf,
  runAt,
  runBlocks,
  runEntries,
  runLength,
  runNew,
  runParent,
  runsInit,
  runSplit,
  runStarting,
  runTidy,
} from "./runs";

const PIECE_BYTES: u32 = 16;

let pieces: usize = 0;
let directory: usize = 0;
let touched: u32 = 0;

/** Starts without prompts; false when there is no room. */
export function promptsInit(): bool {
  touched = 0;
  pieces = slabNew(PIECE_BYTES);
  if (!pieces) return false;
  directory = slabDirectory(pieces);
  return runsInit();
}

// @ts-ignore: decorator
@inline function lastRun(piece: usize): u32 {
  return load<u32>(piece);
}
// @ts-ignore: decorator
@inline function blocksOf(piece: usize): u32 {
  return load<u32>(piece, 4);
}
/** Address of the piece after this one; 0 when it is the last. */
function nextPiece(piece: usize): usize {
  const id = load<u32>(piece, 8);
  return id ? slabAt(directory, PIECE_BYTES, id) : 0;
}

// A walk over the runs of a path: piece by piece, each from its last run to its first.
let walked: usize = 0;
let base: u32 = 0;
/** Blocks of the piece before the run. */
let left: u32 = 0;
/** The run after this one. */
let ahead: u32 = 0;
/** The run, and the address of its record. */
let here: u32 = 0;
let record: usize = 0;

function walk(piece: usize): void {
  walked = piece;
  base = 0;
  left = blocksOf(piece);
  ahead = lastRun(piece);
}

/** Goes to the next run of the walk; false after the last. */
function step(): bool {
  while (!left) {
    base += blocksOf(walked);
    walked = nextPiece(walked);
    if (!walked) return false;
    left = blocksOf(walked);
    ahead = lastRun(walked);
  }
  here = ahead;
  record = runAt(here);
  left -= runLength(record);
  ahead = runParent(record);
  return true;
}

function extend(piece: usize, run: u32, blocks: u32): void {
  store<u32>(piece, run);
  store<u32>(piece, blocksOf(piece) + blocks, 4);
}

/** How many leading hashes of the run at `r` are the first of `n` hashes at `hashes`; one is known to be. */
function common(r: usize, hashes: usize, n: u32): u32 {
  const blocks = runBlocks(r) - 8;
  hashes -= 8;
  let low: u32 = 1;
  let high = min(runLength(r), n);
  let middle = high;
  while (low < high) {
    const at = <usize>middle << 3;
    if (load<u64>(blocks + at) == load<u64>(hashes + at)) low = middle;
    else high = middle - 1;
    middle = (low + high + 1) >> 1;
  }
  return low;
}

/** Lays the path of `n` hashes: finds its runs, cuts and adds where it must. Holds nothing yet. */
function lay(piece: usize, hashes: usize, n: u32): bool {
  let k: u32 = 0;
  while (k < n) {
    const at = hashes + (<usize>k << 3);
    const before = lastRun(piece);
    let run = runStarting(load<u64>(at));
    if (!run) {
      const length = min(n - k, EXTENT_MAX);
      run = runNew(before, at, length);
      if (!run) return false;
      extend(piece, run, length);
      k += length;
      continue;
    }
    const m = common(runAt(run), at, n - k);
    if (m < runLength(runAt(run))) {
      run = runSplit(run, m);
      if (!run) return false;
    }
    const r = runAt(run);
    if (runParent(r) != before) {
      if (before) {
        const id = slabTake(pieces);
        if (!id) return false;
        store<u32>(piece, id, 8);
        piece = slabAt(directory, PIECE_BYTES, id);
        memory.fill(piece, 0, PIECE_BYTES);
      }
      if (runParent(r)) runEntries(r, 1);
    }
    extend(piece, run, m);
    k += m;
  }
  return true;
}

/**
 * Makes a rank work on the `n` sequence hashes at `hashes`; fills `piece`, the first of the path.
 * Answers the weight this adds to the rank; -1 when there is no room: nothing was changed.
 */
export function promptTake(piece: usize, slot: u32, hashes: usize, n: u32): i64 {
  memory.fill(piece, 0, PIECE_BYTES);
  let added: i64 = 0;
  let held: u32 = 0;
  let fits = lay(piece, hashes, n);
  if (fits) {
    for (walk(piece); step(); held++) {
      const weight = runHold(record, slot);
      fits = weight >= 0;
      if (!fits) break;
      added += weight;
    }
  }
  if (fits) return added;
  promptLeave(piece, slot, held);
  return -1;
}

/** Ends a rank's work on a path; answers the weight this takes from the rank. */
export function promptGive(piece: usize, slot: u32): i64 {
  return promptLeave(piece, slot, u32.MAX_VALUE);
}

/** Lets go of the first `held` runs, in the order in which promptTake() holds them, and of the path. */
function promptLeave(piece: usize, slot: u32, held: u32): i64 {
  let taken: i64 = 0;
  for (walk(piece); step(); ) {
    if (held) {
      taken += runLetGo(record, slot);
      held--;
    }
    if (!left && ahead) runEntries(record, -1);
  }
  for (let p = piece; p; p = nextPiece(p)) runTidy(lastRun(p));
  let id = load<u32>(piece, 8);
  while (id) {
    const next = load<u32>(slabAt(directory, PIECE_BYTES, id), 8);
    slabGive(pieces, id);
    id = next;
  }
  memory.fill(piece, 0, PIECE_BYTES);
  return taken;
}

/**
 * Sets the weight of each block in [from, to) of a path, on this rank, that begins and ends with a
 * run; with `exclusive` only where no other request shares it. Answers what the rank's weight
 * changes by.
 */
export function promptWeigh(piece: usize, slot: u32, from: u32, to: u32, weight: i64, exclusive: bool): i64 {
  let change: i64 = 0;
  for (walk(piece); step(); ) {
    const first = base + left;
    const length = runLength(record);
    const holder = holderPlace(record, slot);
    if (first < from || first + length > to || (exclusive && load<u32>(holder, 4) > 1)) continue;
    change += (weight - load<i64>(holder, 8)) * <i64>length;
    store<i64>(holder, weight, 8);
  }
  return change;
}

/** Makes a run of a path end after `k` of its blocks; false when there is no room. */
export function promptCut(piece: usize, k: u32): bool {
  for (walk(piece); step(); ) {
    const first = base + left;
    if (first < k && k < first + runLength(record)) return runSplit(here, k - first) != 0;
  }
  return true;
}

/** Blocks of a path. */
export function promptBlocks(piece: usize): u32 {
  let n: u32 = 0;
  for (let p = piece; p; p = nextPiece(p)) n += blocksOf(p);
  return n;
}

/** Writes a path's sequence hashes to `out`, u64 each. */
export function promptHashes(piece: usize, out: usize): void {
  for (walk(piece); step(); ) {
    memory.copy(out + (<usize>(base + left) << 3), runBlocks(record), <usize>runLength(record) << 3);
  }
}

/**
 * Stretches of a path whose blocks do not weigh 1 on this rank: how many; written to `out`, if it
 * is not 0, as | first block u32 | blocks u32 | weight i64 |.
 */
export function promptWeights(piece: usize, slot: u32, out: usize): u32 {
  let n: u32 = 0;
  for (walk(piece); step(); ) {
    const weight = load<i64>(holderPlace(record, slot), 8);
    if (weight == WEIGHT_ONE) continue;
    if (out) {
      const at = out + (<usize>n << 4);
      store<u32>(at, base + left);
      store<u32>(at, runLength(record), 4);
      store<i64>(at, weight, 8);
    }
    n++;
  }
  return n;
}

/**
 * Writes how many leading blocks of the `n` sequence hashes at `hashes` each rank is working on to the
 * column `active`, if it is wanted, and is believed to hold to the column `predicted`. The columns are 0
 * elsewhere; clearActive() makes them so again.
 */
export function projectActive(hashes: usize, n: u32, wanted: bool): void {
  const active = wanted ? activeColumn() : 0;
  const predicted = predictedColumn();
  const list = touchedColumn();
  for (let k: u32 = 0; k < n; ) {
    const run = runStarting(load<u64>(hashes + (<usize>k << 3)));
    if (!run) return;
    const r = runAt(run);
    const m = common(r, hashes + (<usize>k << 3), n - k);
    const holders = holdersOf(r);
    const end = holders + holderBytes(r);
    for (let h = holders; h < end; h += 16) {
      const key = load<u32>(h);
      const slot = key & ~BELIEVED;
      const row = <usize>rowOf(slot) << 3;
      const column = key == slot ? active : predicted;
      if (!column || load<f64>(column + row) != <f64>k) continue;
      store<f64>(column + row, <f64>(k + m));
      // The slots with the bit come after those without.
      if (!k && (key == slot || !active || !load<f64>(active + row))) {
        store<u32>(list + (<usize>touched << 2), slot);
        touched++;
      }
    }
    if (m < runLength(r)) return;
    k += m;
  }
}

/**
 * Raises the column `device` to `predicted`, which becomes what that gained; blocks in lower tiers that are
 * now counted there no longer count below. Answers whether a rank is believed to hold any.
 */
export function raiseDevice(): bool {
  const list = touchedColumn();
  let any = false;
  for (let i: u32 = 0; i < touched; i++) {
    const row = <usize>rowOf(load<u32>(list + (<usize>i << 2))) << 3;
    let gain = load<f64>(predictedColumn() + row);
    any = any || gain > 0;
    gain = max(0, gain - load<f64>(deviceColumn() + row));
    store<f64>(predictedColumn() + row, gain);
    take(deviceColumn() + row, -gain);
    take(diskColumn() + row, gain - take(hostColumn() + row, gain));
  }
  return any;
}

/** Takes up to `amount` of the f64 at an address; answers how much. */
function take(at: usize, amount: f64): f64 {
  const taken = min(amount, load<f64>(at));
  store<f64>(at, load<f64>(at) - taken);
  return taken;
}

/** Takes back what projectActive() and raiseDevice() wrote; the index's own matches are to be cleared besides. */
export function clearActive(): void {
  const list = touchedColumn();
  for (let i: u32 = 0; i < touched; i++) {
    const row = rowOf(load<u32>(list + (<usize>i << 2)));
    if (row == NO_ROW) continue;
    store<f64>(activeColumn() + (<usize>row << 3), 0);
    store<f64>(predictedColumn() + (<usize>row << 3), 0);
    store<f64>(deviceColumn() + (<usize>row << 3), 0);
  }
  touched = 0;
}
