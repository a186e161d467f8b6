// The candidates of one request for a policy outside the kernel: the rows that may take it, in row order, and the
// columns that the policy asked for, packed, so that the host sees plain arrays.
//
//   one region of `capacity` candidates (a multiple of 64)
//     12 columns of f64, `stride` bytes apart   cache: device, host, disk, shared, estimated blocks and tokens
//                                               load: prefill, decode cost, requests
//                                               taint multiplier
//                                               unknown: NaN, for what no source feeds yet
//                                               total: what the host's scorers gave
//     scratch f64   costs of one scorer
//     row     u32   the row of columns.ts
//     slot    u32
//     rank    u32   data-parallel rank
//     known   u8    1: the load is known
//     near    u8    1: in the router's own region; 0 until a source says so
import {
  activeColumn,
  decodeColumn,
  deviceColumn,
  diskColumn,
  gateColumn,
  hostColumn,
  maskColumn,
  prefillColumn,
  rankCount,
  requestsColumn,
  sharedColumn,
  slotOf,
  taintColumn,
} from "../load/columns";
import { rankDpRank } from "../load/ranks";
import { give, take } from "../memory/arena";
import { taintMultiplier } from "./exp";

/** Groups of columns, as the host's `WorkerInputs`. */
const CACHE: u32 = 1;
const LOAD: u32 = 2;
const TAINT: u32 = 4;
const LATENCY: u32 = 64;
const NETWORK: u32 = 128;

/** Numbers of the columns, as candidateColumn() takes them; those of f64 come first. */
const DEVICE: u32 = 0;
const HOST: u32 = 1;
const DISK: u32 = 2;
const SHARED: u32 = 3;
const ESTIMATED_BLOCKS: u32 = 4;
const ESTIMATED_TOKENS: u32 = 5;
const PREFILL: u32 = 6;
const DECODE_COST: u32 = 7;
const REQUESTS: u32 = 8;
const MULTIPLIER: u32 = 9;
const UNKNOWN: u32 = 10;
const TOTAL: u32 = 11;
const F64_COLUMNS: u32 = 13;
const ROW: u32 = 13;
const SLOT: u32 = 14;
const RANK: u32 = 15;
const KNOWN: u32 = 16;
const NEAR: u32 = 17;

/** Keeps equal places of two columns out of the same cache set. */
const SKEW: usize = 320;

let region: usize = 0;
let capacity: u32 = 0;
let stride: usize = 0;
let count: u32 = 0;

/** Where the candidates lie; their columns move when this does. */
export function candidateRegion(): usize {
  return region;
}

export function candidateCount(): u32 {
  return count;
}

// @ts-ignore: decorator
@inline function regionBytes(rows: u32): usize {
  return <usize>F64_COLUMNS * ((<usize>rows << 3) + SKEW) + <usize>rows * 14;
}

/** Makes room for a candidate of every rank; false when there is none. */
function reach(rows: u32): bool {
  if (rows <= capacity) return true;
  let wanted = max<u32>(capacity, 64);
  while (wanted < rows) wanted <<= 1;
  const fresh = take(regionBytes(wanted));
  if (!fresh) return false;
  give(region, regionBytes(capacity));
  region = fresh;
  capacity = wanted;
  stride = (<usize>wanted << 3) + SKEW;
  return true;
}

/** Address of a column: f64 up to the scratch column, then u32 row, slot and rank, then u8 known and near. */
export function candidateColumn(which: u32): usize {
  if (which < F64_COLUMNS) return region + <usize>which * stride;
  const words = region + <usize>F64_COLUMNS * stride;
  if (which < KNOWN) return words + <usize>(which - ROW) * (<usize>capacity << 2);
  return words + 3 * (<usize>capacity << 2) + <usize>(which - KNOWN) * capacity;
}

/**
 * Lists the rows that a request may take: `pinned` alone unless it is -1, else those that no gate and, with `masked`,
 * no mask excludes. Answers how many; -1 when there is no room.
 */
export function listCandidates(pinned: i32, masked: bool): i32 {
  const n = rankCount();
  if (!reach(n)) return -1;
  const rows = candidateColumn(ROW);
  count = 0;
  if (pinned >= 0) {
    store<u32>(rows, pinned);
    count = 1;
    return 1;
  }
  const gates = gateColumn();
  const mask = maskColumn();
  for (let row: u32 = 0; row < n; row++) {
    if (load<f64>(gates + (<usize>row << 3)) != 0 || (masked && load<u8>(mask + row))) continue;
    store<u32>(rows + (<usize>count << 2), row);
    count++;
  }
  return count;
}

/** The row of a candidate. */
// @ts-ignore: decorator
@inline export function candidateRow(index: u32): u32 {
  return load<u32>(candidateColumn(ROW) + (<usize>index << 2));
}

/** What the host's scorers gave a candidate in all. */
// @ts-ignore: decorator
@inline export function candidateTotal(index: u32): f64 {
  return load<f64>(candidateColumn(TOTAL) + (<usize>index << 3));
}

function copyColumn(from: usize, which: u32): void {
  const to = candidateColumn(which);
  if (count == rankCount()) {
    memory.copy(to, from, <usize>count << 3);
    return;
  }
  const rows = candidateColumn(ROW);
  for (let i: usize = 0, end = <usize>count; i < end; i++) {
    store<f64>(to + (i << 3), load<f64>(from + (<usize>load<u32>(rows + (i << 2)) << 3)));
  }
}

/**
 * Fills the columns of `inputs` for the first `n` candidates, which are all from now on. `sequenceBlocks` are the
 * complete blocks that the column `active` is out of; lower tiers are weighed by `hostWeight` and `diskWeight`.
 */
export function gatherCandidates(
  n: u32,
  inputs: u32,
  size: f64,
  sequenceBlocks: f64,
  hostWeight: f64,
  diskWeight: f64,
): void {
  count = n;
  const rows = candidateColumn(ROW);
  const slots = candidateColumn(SLOT);
  const ranks = candidateColumn(RANK);
  for (let i: usize = 0, end = <usize>n << 2; i < end; i += 4) {
    const slot = slotOf(load<u32>(rows + i));
    store<u32>(slots + i, slot);
    store<u32>(ranks + i, rankDpRank(slot));
  }
  if (inputs & CACHE) gatherCache(size, hostWeight, diskWeight);
  if (inputs & LOAD) gatherLoad(sequenceBlocks);
  if (inputs & TAINT) {
    copyColumn(taintColumn(), MULTIPLIER);
    const out = candidateColumn(MULTIPLIER);
    for (let i: usize = 0, end = <usize>n << 3; i < end; i += 8) store<f64>(out + i, taintMultiplier(load<f64>(out + i)));
  }
  if (inputs & (LATENCY | NETWORK)) {
    const out = candidateColumn(UNKNOWN);
    for (let i: usize = 0, end = <usize>n << 3; i < end; i += 8) store<f64>(out + i, NaN);
    memory.fill(candidateColumn(NEAR), 0, n);
  }
}

/** The estimate is in blocks, and in tokens rounded half away from zero (cost.ts). */
function gatherCache(size: f64, hostWeight: f64, diskWeight: f64): void {
  copyColumn(deviceColumn(), DEVICE);
  copyColumn(hostColumn(), HOST);
  copyColumn(diskColumn(), DISK);
  copyColumn(sharedColumn(), SHARED);
  const device = candidateColumn(DEVICE);
  const host = candidateColumn(HOST);
  const disk = candidateColumn(DISK);
  const blocks = candidateColumn(ESTIMATED_BLOCKS);
  const tokens = candidateColumn(ESTIMATED_TOKENS);
  for (let i: usize = 0, end = <usize>count << 3; i < end; i += 8) {
    const estimate = load<f64>(device + i) + hostWeight * load<f64>(host + i) + diskWeight * load<f64>(disk + i);
    const exact = estimate * size;
    const whole = Math.floor(exact);
    store<f64>(blocks + i, estimate);
    store<f64>(tokens + i, exact - whole >= 0.5 ? whole + 1 : whole);
  }
}

function gatherLoad(sequenceBlocks: f64): void {
  copyColumn(prefillColumn(), PREFILL);
  copyColumn(requestsColumn(), REQUESTS);
  memory.fill(candidateColumn(KNOWN), 1, count);
  const rows = candidateColumn(ROW);
  const decode = decodeColumn();
  const active = activeColumn();
  const out = candidateColumn(DECODE_COST);
  for (let i: usize = 0, end = <usize>count; i < end; i++) {
    const row = <usize>load<u32>(rows + (i << 2)) << 3;
    store<f64>(out + (i << 3), load<f64>(decode + row) + (sequenceBlocks - load<f64>(active + row)));
  }
}
