// One decision: hash → match → project → score → pick → book. For a policy inside the kernel it is one call; one
// outside gets the candidates in between (candidates.ts), so that it is prepare → (gather) → commit or abandon.
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
//
// The tier weights say what an overlap saves when it is accounted for, whatever a policy credits.
import { hashBlocks } from "../hash/blocks";
import { book, bookingGeneration } from "../load/bookings";
import {
  ACTIVE,
  COST,
  DEVICE,
  deviceColumn,
  DISK,
  diskColumn,
  GATE,
  HOST,
  hostColumn,
  maskColumn,
  PREFILL,
  rankCount,
  REQUESTS,
  SHARED,
  slotOf,
  valueAt,
} from "../load/columns";
import { clearActive, projectActive } from "../load/prompts";
import { rowOf } from "../load/ranks";
import {
  indexFind,
  indexFindLower,
  indexLowerCount,
  indexLowerOut,
  indexOut,
  indexOutCount,
} from "../prefix/index";
import { MEMORY_BUDGET, OK } from "../status";
import {
  candidateCount,
  candidateRegion,
  candidateRow,
  candidateTotal,
  gatherCandidates,
  listCandidates,
} from "./candidates";
import { explainRow, FLAG_LOWER, FLAG_MASK, FLAG_TRACK, scoreRow, scoreRows } from "./cost";
import { fillProbabilities, pickRow, pickTied, pickTieIndex } from "./pick";
import { randomRestore, randomSave } from "./random";
import { scoreTwoTier } from "./two-tier";

/** No rank may take the request. */
export const NO_CANDIDATE: i32 = -20;

// Flags: the low byte is cost.ts's.
/** Charge the request to the chosen rank. */
const BOOK: u32 = 1 << 8;
/** Share no prompt block with other requests (assume_kv_reuse = false). */
const PRIVATE_BLOCKS: u32 = 1 << 9;
/** Do not look the prompt up. */
const NO_INDEX: u32 = 1 << 10;
/** Charge no prompt blocks at all (router_track_active_blocks = false). */
const NO_PROMPT_BLOCKS: u32 = 1 << 11;
/** Leave the generator as it was. */
const PROBE: u32 = 1 << 12;
/** Keep the columns for an explanation; the host calls releaseColumns(). */
const KEEP: u32 = 1 << 13;

const TWO_TIER: u32 = 1;

const request: usize = memory.data(192, 16);
const answer: usize = memory.data(128, 16);
const terms: usize = memory.data(80, 16);
const savedRandom: usize = memory.data(32, 16);
const PARAMS = request + 64;
const TWO_TIER_PARAMS = request + 128;
const TIER_WEIGHTS = request + 152;

let blockSize: u32 = 1;
/** matchColumns() has written to the columns. */
let matched: bool = false;

// The request that matchPrompt() looked up: its flags, and what is charged of its blocks.
let flags: u32 = 0;
let sequences: usize = 0;
let charged: u32 = 0;

export function decideInit(size: u32): void {
  blockSize = size;
}

export function requestRow(): usize {
  return request;
}
export function answerRow(): usize {
  return answer;
}

/** Hashes the prompt at `tokens` into `hashes` and fills the columns that depend on it. */
function matchPrompt(tokens: usize, hashes: usize): void {
  const n = load<u32>(request);
  flags = load<u32>(request, 4);
  sequences = hashes;
  const blocks = hashBlocks(tokens, n, blockSize, load<u32>(request, 24), load<u64>(request, 16), 0, hashes);
  if (!(flags & NO_INDEX)) {
    matchColumns(hashes, blocks);
    if (indexLowerCount) flags |= FLAG_LOWER;
  }
  if (!(flags & (PRIVATE_BLOCKS | NO_PROMPT_BLOCKS))) projectActive(hashes, blocks);
  store<u32>(answer, blocks, 24);
  charged = flags & NO_PROMPT_BLOCKS ? 0 : blocks;
  randomSave(savedRandom);
}

/** Books a decision that came out well, and puts back what must be. Answers the decision's status. */
function conclude(status: i32): i32 {
  if (status == OK && flags & BOOK) status = bookChosen();
  if (status != OK || flags & PROBE) randomRestore(savedRandom);
  if (!(flags & KEEP)) releaseColumns();
  return status;
}

/** Decides for the prompt at `tokens`; `hashes` has room for its blocks. OK, NO_CANDIDATE or MEMORY_BUDGET. */
export function decidePrompt(tokens: usize, hashes: usize): i32 {
  matchPrompt(tokens, hashes);
  return conclude(chooseRow(<f64>load<u32>(request), <f64>charged, flags));
}

// ---- for a policy outside the kernel

/**
 * Looks up the prompt at `tokens`, lists the candidates and fills their columns of `inputs`. Answers how many there
 * are, NO_CANDIDATE or MEMORY_BUDGET. A positive answer must be followed by commit() or abandon().
 */
export function prepareCandidates(tokens: usize, hashes: usize, inputs: u32): i32 {
  matchPrompt(tokens, hashes);
  const pinned = load<u32>(request, 8);
  const row = pinned ? <i32>rowOf(pinned - 1) : -1;
  const n = pinned && row < 0 ? 0 : listCandidates(row, (flags & FLAG_MASK) != 0);
  if (n <= 0) {
    abandon();
    return n ? MEMORY_BUDGET : NO_CANDIDATE;
  }
  store<u32>(answer, <u32>candidateRegion(), 96);
  store<u32>(answer, !(flags & NO_INDEX) && (indexOutCount | indexLowerCount) ? 1 : 0, 100);
  gather(n, inputs);
  return n;
}

/** Fills columns of `inputs` for the first `n` candidates, which the host has moved to the front; the others are out. */
export function gather(n: u32, inputs: u32): void {
  gatherCandidates(n, inputs, <f64>blockSize, <f64>charged, load<f64>(TIER_WEIGHTS), load<f64>(TIER_WEIGHTS, 8));
}

/** Takes a candidate, by its totals' leave or not: says so in the answer row, and books. OK or MEMORY_BUDGET. */
export function commit(index: u32): i32 {
  const n = candidateCount();
  const row = candidateRow(index);
  const total = candidateTotal(index);
  let tied: u32 = 0;
  let before: u32 = 0;
  for (let i: u32 = 0; i < n; i++) {
    const other = candidateTotal(i);
    if (other < total) {
      tied = 0;
      break;
    }
    if (other != total) continue;
    if (i < index) before++;
    tied++;
  }
  store<f64>(answer, total, 40);
  store<u32>(answer, tied, 8);
  store<u32>(answer, tied ? before : 0, 12);
  store<u32>(answer, min<u32>(n, 2), 28);
  let alike = n > 1 && tied == n;
  for (let i: u32 = 0; i < n && alike; i++) alike = isAlike(candidateRow(i), candidateRow(0));
  store<u32>(answer, alike ? 1 : 0, 32);
  describeRow(row, <f64>load<u32>(request), flags);
  return conclude(OK);
}

/** Ends a prepared request without a choice: the generator and the columns are as before it. */
export function abandon(): void {
  randomRestore(savedRandom);
  releaseColumns();
}

// ---- the parts

/** Decides over the columns as the host has written them, for the row's prompt tokens. */
export function chooseColumns(): i32 {
  return chooseRow(load<f64>(request, 32), 0, load<u32>(request, 4));
}

/** Writes the overlap of a prompt's sequence hashes to the columns device, host and disk. */
export function matchColumns(sequences: usize, blocks: u32): void {
  indexFind(sequences, blocks);
  indexFindLower(sequences, blocks);
  matched = true;
  spreadMatches(1);
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

function chooseRow(tokens: f64, sequenceBlocks: f64, flags: u32): i32 {
  const size = <f64>blockSize;
  const promptBlocks = Math.ceil(tokens / size);
  const pinned = load<u32>(request, 8);
  let row: i32;
  if (pinned) {
    row = <i32>rowOf(pinned - 1);
    if (row < 0) return NO_CANDIDATE;
    if (load<u32>(request, 12) == TWO_TIER) branch(promptBlocks, flags);
    store<f64>(answer, scoreRow(row, PARAMS, tokens, size, promptBlocks, sequenceBlocks, flags & 15, terms), 40);
    store<u32>(answer, 0, 8);
    store<u32>(answer, 1, 28);
    store<u32>(answer, 0, 32);
  } else {
    if (load<u32>(request, 12) == TWO_TIER) {
      branch(promptBlocks, flags);
      row = pickRow(0);
    } else {
      scoreRows(PARAMS, tokens, size, promptBlocks, sequenceBlocks, flags & 0xff);
      row = pickRow(load<f64>(PARAMS, 56));
    }
    if (row < 0) return NO_CANDIDATE;
    store<f64>(answer, valueAt(COST, row), 40);
    store<u32>(answer, pickTied(), 8);
    store<u32>(answer, pickTieIndex(), 12);
    signal((flags & FLAG_MASK) != 0);
  }
  describeRow(row, tokens, flags);
  return OK;
}

/** Says of the chosen row who it is and what of the prompt it holds. */
function describeRow(row: u32, tokens: f64, flags: u32): void {
  store<u32>(answer, slotOf(row), 0);
  store<u32>(answer, row, 4);
  const device = valueAt(DEVICE, row);
  const host = valueAt(HOST, row);
  const disk = valueAt(DISK, row);
  store<f64>(answer, device, 48);
  store<f64>(answer, host, 56);
  store<f64>(answer, disk, 64);
  store<f64>(answer, valueAt(SHARED, row), 72);
  // Booking weighs the device tier fully whatever the credit, and no shared cache (spec/scheduling.md §4.2).
  const saved = device + host * load<f64>(TIER_WEIGHTS) + disk * load<f64>(TIER_WEIGHTS, 8);
  const cached = Math.floor(saved * <f64>blockSize + 0.5);
  store<f64>(answer, cached, 80);
  store<f64>(answer, flags & FLAG_TRACK ? max(0, tokens - cached) : 0, 88);
}

/** Scores by the two-tier policy and notes the branch it took. */
function branch(promptBlocks: f64, flags: u32): void {
  store<u32>(answer, scoreTwoTier(TWO_TIER_PARAMS, promptBlocks, (flags & FLAG_MASK) != 0), 36);
}

/** Says how many candidates there were (2 stands for more), and whether nothing told them apart. */
function signal(masked: bool): void {
  const n = rankCount();
  let first: u32 = 0;
  let candidates: u32 = 0;
  let alike = true;
  for (let row: u32 = 0; row < n && (candidates < 2 || alike); row++) {
    if (valueAt(GATE, row) != 0 || (masked && load<u8>(maskColumn() + row))) continue;
    if (!candidates) first = row;
    alike = alike && isAlike(row, first) && valueAt(COST, row) == valueAt(COST, first);
    candidates = candidates ? 2 : 1;
  }
  store<u32>(answer, candidates, 28);
  store<u32>(answer, candidates == 2 && alike ? 1 : 0, 32);
}

/** The two rows have the same load, and nothing of the prompt is on the first. */
function isAlike(row: u32, other: u32): bool {
  for (let column = PREFILL; column < DEVICE; column++) {
    if (valueAt(column, row) != valueAt(column, other)) return false;
  }
  for (let column = DEVICE; column <= ACTIVE; column++) if (valueAt(column, row) != 0) return false;
  return true;
}

function bookChosen(): i32 {
  const isPrivate = (flags & PRIVATE_BLOCKS) != 0;
  const shared = isPrivate ? 0 : charged;
  const id = book(load<u32>(answer), sequences, shared, isPrivate ? charged : 0, load<f64>(answer, 88));
  if (!id) return MEMORY_BUDGET;
  store<u32>(answer, id, 16);
  store<u32>(answer, bookingGeneration(id), 20);
  return OK;
}

/** The terms of a row at the last decision: 10 f64 of cost.ts, or active requests, overlap and branch. */
export function explainTerms(row: u32): usize {
  if (load<u32>(request, 12) == TWO_TIER) {
    store<f64>(terms, valueAt(REQUESTS, row));
    store<f64>(terms, valueAt(DEVICE, row), 8);
    store<f64>(terms, <f64>load<u32>(answer, 36), 16);
  } else explainRow(row, terms);
  return terms;
}

/** Fills the probability column for the last decision's policy. */
export function explainProbabilities(): void {
  fillProbabilities(load<u32>(request, 12) == TWO_TIER ? 0 : load<f64>(PARAMS, 56));
}
