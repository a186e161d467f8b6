// One request on its way to a decision: hash → match → project before the choice (decide.ts, outside.ts), book after it.
//
// The host writes the prompt's tokens and the request row, calls a verb, and reads the answer row.
//
//   request row, 192 B                              answer row, 128 B
//   0   tokens            u32                       0   slot                u32
//   4   flags             u32 (below)               4   row                 u32
//   8   pinned slot + 1   u32, 0 = none             8   rows tied           u32
//   12  policy            u32                       12  which of them       u32
//   16  hash seed         u64                       16  booking id          u32
//   24  window            u32 tokens                20  booking generation  u32
//   28  -                                           24  complete blocks     u32
//   32  prompt tokens     f64 (choose)              28  candidates          u32, 2 = two or more
//   40  -                                           32  no signal           u32
//   64  params            8 f64 (cost.ts)           36  branch              u32 (two-tier.ts)
//   128 two-tier params   3 f64 (two-tier.ts)       40  cost                f64
//   152 tier weights      2 f64, host and disk      48  device, host, disk, shared blocks   4 f64
//                                                   80  cached tokens       f64
//                                                   88  prefill tokens charged   f64
//                                                   96  candidates.ts region     u32
//                                                   100 a rank holds any of the prompt   u32
//                                                   104 prediction id       u32, 0 = none
//                                                   108 its generation      u32
//                                                   112 blocks that it adds    u32
//                                                   116 overlap is predicted   u32
//
// The tier weights say what an overlap saves when it is accounted for, whatever a policy credits.
import { hashBlocks } from "../hash/blocks";
import { believedBlocks, book, predictionCount } from "../load/bookings";
import {
  ACTIVE,
  DEVICE,
  deviceColumn,
  DISK,
  diskColumn,
  HOST,
  hostColumn,
  PREDICTED,
  PREFILL,
  SHARED,
  slotOf,
  valueAt,
} from "../load/columns";
import { clearActive, projectActive, raiseDevice } from "../load/prompts";
import { BELIEVED, rowOf } from "../load/ranks";
import { bookingGeneration } from "../load/records";
import { indexFind, indexFindLower, indexLowerCount, indexLowerOut, indexOut, indexOutCount } from "../prefix/index";
import { MEMORY_BUDGET, OK } from "../status";
import { FLAG_LOWER, FLAG_TRACK } from "./cost";
import { randomRestore, randomSave } from "./random";

/** No rank may take the request. */
export const NO_CANDIDATE: i32 = -20;

// Flags: the low byte is cost.ts's.
/** Charge the request to the chosen rank. */
const BOOK: u32 = 1 << 8;
/** Share no prompt block with other requests (assume_kv_reuse = false). */
const PRIVATE_BLOCKS: u32 = 1 << 9;
/** Do not look the prompt up. */
export const NO_INDEX: u32 = 1 << 10;
/** Charge no prompt blocks at all (router_track_active_blocks = false). */
const NO_PROMPT_BLOCKS: u32 = 1 << 11;
/** Leave the generator as it was. */
const PROBE: u32 = 1 << 12;
/** Keep the columns for an explanation; the host calls releaseColumns(). */
const KEEP: u32 = 1 << 13;
/** Believe from now on that the chosen rank holds the prompt. */
const PREDICT: u32 = 1 << 14;

export const request: usize = memory.data(192, 16);
export const answer: usize = memory.data(128, 16);
const savedRandom: usize = memory.data(32, 16);
export const TIER_WEIGHTS = request + 152;

export let blockSize: u32 = 1;
/** matchColumns() has written to the columns. */
let matched: bool = false;
/** A rank holds any of the prompt, or is believed to. */
export let isHeld: bool = false;

// The request that matchPrompt() looked up: its flags, and what is charged of its blocks.
export let flags: u32 = 0;
let sequences: usize = 0;
export let charged: u32 = 0;

export function requestInit(size: u32): void {
  blockSize = size;
}

export function requestRow(): usize {
  return request;
}
export function answerRow(): usize {
  return answer;
}

/** Hashes the prompt at `tokens` into `hashes` and fills the columns that depend on it. */
export function matchPrompt(tokens: usize, hashes: usize): void {
  const n = load<u32>(request);
  flags = load<u32>(request, 4);
  sequences = hashes;
  const blocks = hashBlocks(tokens, n, blockSize, load<u32>(request, 24), load<u64>(request, 16), 0, hashes);
  const isShared = !(flags & (PRIVATE_BLOCKS | NO_PROMPT_BLOCKS));
  isHeld = false;
  if (!(flags & NO_INDEX)) {
    matchColumns(hashes, blocks, isShared);
    if (indexLowerCount) flags |= FLAG_LOWER;
  } else if (isShared) projectActive(hashes, blocks, true);
  store<u32>(answer, blocks, 24);
  charged = flags & NO_PROMPT_BLOCKS ? 0 : blocks;
  randomSave(savedRandom);
}

/**
 * Books a decision that came out well, and puts back what must be. Answers the decision's status. A decision whose
 * columns are kept is booked by bookKept(), so that they say what it was taken by.
 */
export function conclude(status: i32): i32 {
  if (status == OK && (flags & (BOOK | KEEP)) == BOOK) status = bookChosen();
  if (status != OK || flags & PROBE) randomRestore(savedRandom);
  if (!(flags & KEEP)) releaseColumns();
  return status;
}

/** Books the last decision, whose columns are kept. OK or MEMORY_BUDGET. */
export function bookKept(): i32 {
  const status = bookChosen();
  if (status != OK) randomRestore(savedRandom);
  return status;
}

/** Ends a request without a choice: the generator and the columns are as before it. */
export function abandon(): void {
  randomRestore(savedRandom);
  releaseColumns();
}

/** Writes the overlap of a prompt's sequence hashes to the columns device, host and disk, and to `active` if wanted. */
export function matchColumns(sequences: usize, blocks: u32, active: bool): void {
  indexFind(sequences, blocks);
  indexFindLower(sequences, blocks);
  matched = true;
  spreadMatches(1);
  isHeld = (indexOutCount | indexLowerCount) != 0;
  const predicts = predictionCount() > 0;
  if (active || predicts) projectActive(sequences, blocks, active);
  if (predicts && raiseDevice()) isHeld = true;
}

/** Takes back what matchColumns() and projectActive() wrote. */
export function releaseColumns(): void {
  clearActive();
  if (matched) spreadMatches(0);
  matched = false;
}

/** Writes the index's lists to the columns, times `factor`. */
function spreadMatches(factor: f64): void {
  const device = deviceColumn();
  let at = indexOut;
  for (let end = at + (<usize>indexOutCount << 3); at < end; at += 8) {
    store<f64>(device + (<usize>rowOf(load<u32>(at)) << 3), factor * <f64>load<u32>(at, 4));
  }
  at = indexLowerOut;
  for (let end = at + <usize>indexLowerCount * 12; at < end; at += 12) {
    const row = <usize>rowOf(load<u32>(at)) << 3;
    store<f64>(hostColumn() + row, factor * <f64>load<u32>(at, 4));
    store<f64>(diskColumn() + row, factor * <f64>load<u32>(at, 8));
  }
}

/** Says of the chosen row who it is and what of the prompt it holds. */
export function describeRow(row: u32, tokens: f64, flags: u32): void {
  store<u32>(answer, slotOf(row), 0);
  store<u32>(answer, row, 4);
  const device = valueAt(DEVICE, row);
  const host = valueAt(HOST, row);
  const disk = valueAt(DISK, row);
  store<f64>(answer, device, 48);
  store<f64>(answer, host, 56);
  store<f64>(answer, disk, 64);
  store<f64>(answer, valueAt(SHARED, row), 72);
  store<u32>(answer, valueAt(PREDICTED, row) > 0 ? 1 : 0, 116);
  // Booking weighs the device tier fully whatever the credit, and no shared cache (spec/scheduling.md §4.2).
  const saved = device + host * load<f64>(TIER_WEIGHTS) + disk * load<f64>(TIER_WEIGHTS, 8);
  const cached = Math.floor(saved * <f64>blockSize + 0.5);
  store<f64>(answer, cached, 80);
  store<f64>(answer, flags & FLAG_TRACK ? max(0, tokens - cached) : 0, 88);
}

/** The two rows have the same load, and nothing of the prompt is on the first. */
export function isAlike(row: u32, other: u32): bool {
  for (let column = PREFILL; column < DEVICE; column++) {
    if (valueAt(column, row) != valueAt(column, other)) return false;
  }
  for (let column = DEVICE; column <= ACTIVE; column++) if (valueAt(column, row) != 0) return false;
  return true;
}

function bookChosen(): i32 {
  const isPrivate = (flags & PRIVATE_BLOCKS) != 0;
  const shared = isPrivate ? 0 : charged;
  const slot = load<u32>(answer);
  const id = book(slot, sequences, shared, isPrivate ? charged : 0, load<f64>(answer, 88));
  if (!id) return MEMORY_BUDGET;
  store<u32>(answer, id, 16);
  store<u32>(answer, bookingGeneration(id), 20);
  if (flags & PREDICT) predict(slot, sequences, load<u32>(answer, 24));
  return OK;
}

/** Makes a rank be believed to hold a prompt; the answer row has the prediction, or 0 when there is no room. */
export function predict(slot: u32, hashes: usize, blocks: u32): void {
  const before = believedBlocks(slot);
  const id = book(slot | BELIEVED, hashes, blocks, 0, 0);
  store<u32>(answer, id, 104);
  store<u32>(answer, bookingGeneration(id), 108);
  store<u32>(answer, believedBlocks(slot) - before, 112);
}
