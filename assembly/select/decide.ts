// A decision of a policy inside the kernel, in one call: request.ts, with a choice by cost or load in its middle.
import { COST, DEVICE, GATE, maskColumn, rankCount, REQUESTS, valueAt } from "../load/columns";
import { rowOf } from "../load/ranks";
import { OK } from "../status";
import { explainRow, FLAG_MASK, scoreRow, scoreRows } from "./cost";
import { fillProbabilities, pickRow, pickTied, pickTieIndex } from "./pick";
import {
  answer,
  blockSize,
  charged,
  conclude,
  describeRow,
  flags,
  isAlike,
  matchPrompt,
  NO_CANDIDATE,
  request,
} from "./request";
import { scoreTwoTier } from "./two-tier";

const TWO_TIER: u32 = 1;

const terms: usize = memory.data(80, 16);
const PARAMS = request + 64;
const TWO_TIER_PARAMS = request + 128;

/** Decides for the prompt at `tokens`; `hashes` has room for its blocks. OK, NO_CANDIDATE or MEMORY_BUDGET. */
export function decidePrompt(tokens: usize, hashes: usize): i32 {
  matchPrompt(tokens, hashes);
  return conclude(chooseRow(<f64>load<u32>(request), <f64>charged, flags));
}

/** Decides over the columns as the host has written them, for the row's prompt tokens. */
export function chooseColumns(): i32 {
  return chooseRow(load<f64>(request, 32), 0, load<u32>(request, 4));
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
