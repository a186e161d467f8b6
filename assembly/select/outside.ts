// A decision of a policy outside the kernel: prepare → (filters, gather) → commit or abandon. In between, the host's
// components read the candidates' columns (candidates.ts) and write their totals.
import { rowOf } from "../load/ranks";
import { MEMORY_BUDGET, OK } from "../status";
import {
  candidateCount,
  candidateRegion,
  candidateRow,
  candidateTotal,
  gatherCandidates,
  listCandidates,
} from "./candidates";
import { FLAG_MASK } from "./cost";
import {
  abandon,
  answer,
  blockSize,
  charged,
  conclude,
  describeRow,
  flags,
  isAlike,
  isHeld,
  matchPrompt,
  NO_CANDIDATE,
  request,
  TIER_WEIGHTS,
} from "./request";

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
  store<u32>(answer, isHeld ? 1 : 0, 100);
  gather(n, inputs);
  return n;
}

/** Fills columns of `inputs` for the first `n` candidates, which the host has moved to the front; the others are out. */
export function gather(n: u32, inputs: u32): void {
  gatherCandidates(n, inputs, <f64>blockSize, <f64>charged, load<f64>(TIER_WEIGHTS), load<f64>(TIER_WEIGHTS, 8));
}

/** Takes a candidate, whatever its total: says so in the answer row, and books. OK or MEMORY_BUDGET. */
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
