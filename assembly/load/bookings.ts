// Bookings: the load charged to a rank for one request, from its selection until it ends (records.ts).
//
// Own blocks are shared with nobody: output blocks, and prompt blocks that must not be reused.
//
// A prediction is a record whose slot has the bit BELIEVED: its prompt was sent to that rank, which is
// therefore believed to hold it. It charges nothing, and is no booking to those who count them.
import { OK, UNKNOWN_BOOKING, UNKNOWN_RANK } from "../status";
import { REQUESTS } from "./columns";
import { prefillBegin, prefillEnd, prefillsInit } from "./prefills";
import { promptBlocks, promptGive, promptHashes, promptsInit, promptTake, promptWeigh } from "./prompts";
import {
  BELIEVED,
  bookingListOf,
  chargeBlocks,
  chargeColumn,
  NO_ROW,
  rankDrop,
  rowOf,
  slotAt,
  WEIGHT_ONE,
  WEIGHT_SHIFT,
} from "./ranks";
import { bookingAt, idGive, idTake, recordOf, recordsInit } from "./records";

/** More tokens than linear memory can hold: keeps the sums of whole numbers exact. */
export const PREFILL_MAX: f64 = 4294967296;
/** Most blocks of one request that are shared with nobody: keeps sums of weights within 64 bits. */
export const OWN_MAX: u32 = 1 << 26;

let live: u32 = 0;
let believed: u32 = 0;

/** Starts without bookings and prompts; false when there is no room. */
export function bookingsInit(): bool {
  live = 0;
  believed = 0;
  prefillsInit();
  return recordsInit() && promptsInit();
}

/** Bookings that have not ended. */
export function bookingCount(): u32 {
  return live;
}

/** Predictions that have not ended. */
export function predictionCount(): u32 {
  return believed;
}

/** Distinct blocks that the rank of a slot is believed to hold. */
export function believedBlocks(slot: u32): u32 {
  return load<u32>(slotAt(slot), 60);
}

/** A rank is believed to hold blocks of this weight more. */
function believe(slot: u32, weight: i64): void {
  store<u32>(slotAt(slot & ~BELIEVED), believedBlocks(slot & ~BELIEVED) + <i32>(weight >> WEIGHT_SHIFT), 60);
}

/** The slot of a live booking; NO_ROW when this handle is not one. */
export function bookingSlot(id: u32, generation: u32): u32 {
  const b = recordOf(id, generation);
  return b ? load<u32>(b, 20) : NO_ROW;
}

function begin(id: u32, slot: u32, hashes: usize, n: u32, ownBlocks: u32, ownWeight: i64, prefill: f64): bool {
  const b = bookingAt(id);
  const weight = promptTake(b, slot, hashes, n);
  if (weight < 0) {
    idGive(id);
    return false;
  }
  const list = bookingListOf(slot & ~BELIEVED);
  const next = load<u32>(list);
  store<u32>(b, slot, 20);
  store<u32>(b, 0, 24);
  store<u32>(b, next, 28);
  store<i64>(b, ownWeight, 32);
  store<u32>(b, ownBlocks, 48);
  store<u32>(b, 1, 52);
  if (next) store<u32>(bookingAt(next), id, 24);
  store<u32>(list, id);
  if (slot & BELIEVED) {
    prefillBegin(id, 0, 0);
    believed++;
    believe(slot, weight);
    return true;
  }
  live++;
  chargeBlocks(slot, weight + ownWeight);
  prefillBegin(id, slot, prefill);
  chargeColumn(REQUESTS, slot, 1);
  return true;
}

/**
 * Charges a request to a rank: `n` sequence hashes (u64) at `hashes`, shared with the rank's other
 * requests, `privateBlocks` prompt blocks that are shared with none, and whole prefill tokens.
 * Answers the booking's id; 0 when there is no room or the slot holds no rank: nothing was changed.
 */
export function book(slot: u32, hashes: usize, n: u32, privateBlocks: u32, prefillTokens: f64): u32 {
  if (rowOf(slot & ~BELIEVED) == NO_ROW) return 0;
  const id = idTake();
  if (!id) return 0;
  const prefill = prefillTokens > 0 ? min(Math.floor(prefillTokens), PREFILL_MAX) : 0;
  const blocks = min(privateBlocks, OWN_MAX);
  return begin(id, slot, hashes, n, blocks, WEIGHT_ONE * <i64>blocks, prefill) ? id : 0;
}

/**
 * Books again what a snapshot says, under an id that is expected. False when there is no room:
 * nothing was changed, but the id is spent.
 */
export function bookingRestore(
  id: u32,
  generation: u32,
  slot: u32,
  hashes: usize,
  n: u32,
  ownBlocks: u32,
  ownWeight: i64,
  prefill: f64,
): bool {
  store<u32>(bookingAt(id), generation, 16);
  return begin(id, slot, hashes, n, ownBlocks, ownWeight, prefill);
}

/** Makes an id that is expected a free one of this generation. */
export function bookingRestoreFree(id: u32, generation: u32): void {
  store<u32>(bookingAt(id), generation, 16);
  idGive(id);
}

/** The request's first token is out: its prefill tokens no longer count. Idempotent. */
export function bookingPrefillComplete(id: u32, generation: u32): i32 {
  if (!recordOf(id, generation)) return UNKNOWN_BOOKING;
  prefillEnd(id);
  return OK;
}

/**
 * The request's output crossed `more` block boundaries. A `fraction` in 0…1 becomes the weight of every
 * block that only this request references on its rank (spec/scheduling.md §1.5); with NaN the new
 * blocks weigh 1 and the others stay. A request has at most OWN_MAX blocks of its own; more do not count.
 */
export function bookingOutputBlocks(id: u32, generation: u32, more: u32, fraction: f64): i32 {
  const b = recordOf(id, generation);
  if (!b) return UNKNOWN_BOOKING;
  const slot = load<u32>(b, 20);
  const own0 = load<u32>(b, 48);
  const blocks = <u32>min<u64>(<u64>own0 + more, OWN_MAX);
  const before = load<i64>(b, 32);
  let own = before + WEIGHT_ONE * <i64>(blocks - own0);
  let change: i64 = 0;
  if (fraction == fraction) {
    const weight = <i64>nearest(min(max(fraction, 0), 1) * <f64>WEIGHT_ONE);
    own = weight * <i64>blocks;
    change = promptWeigh(b, slot, 0, u32.MAX_VALUE, weight, true);
  }
  store<u32>(b, blocks, 48);
  store<i64>(b, own, 32);
  chargeBlocks(slot, own - before + change);
  return OK;
}

/** Ends a booking or a prediction. */
function end(id: u32): void {
  const b = bookingAt(id);
  const slot = load<u32>(b, 20);
  const previous = load<u32>(b, 24);
  const next = load<u32>(b, 28);
  prefillEnd(id);
  if (next) store<u32>(bookingAt(next), previous, 24);
  store<u32>(previous ? bookingAt(previous) + 28 : bookingListOf(slot & ~BELIEVED), next);
  const weight = promptGive(b, slot);
  if (slot & BELIEVED) {
    believed--;
    believe(slot, -weight);
  } else {
    chargeBlocks(slot, -weight - load<i64>(b, 32));
    chargeColumn(REQUESTS, slot, -1);
    live--;
  }
  store<u32>(b, load<u32>(b, 16) + 1, 16);
  idGive(id);
}

/** Ends a booking and takes its whole load away. UNKNOWN_BOOKING, and no effect, when it has ended. */
export function bookingFree(id: u32, generation: u32): i32 {
  if (!recordOf(id, generation)) return UNKNOWN_BOOKING;
  end(id);
  return OK;
}

/** Prompt blocks of a booking or prediction; 0 when it has ended. */
export function bookingBlocks(id: u32, generation: u32): u32 {
  const b = recordOf(id, generation);
  return b ? promptBlocks(b) : 0;
}

/**
 * Leaves at most the first `keep` blocks of a prediction; with 0 it ends. `scratch` has room for all its hashes. Where
 * there is no room for what is left, nothing is.
 */
export function predictionKeep(id: u32, generation: u32, keep: u32, scratch: usize): void {
  const b = recordOf(id, generation);
  if (!b) return;
  if (!keep) end(id);
  if (!keep || keep >= promptBlocks(b)) return;
  const slot = load<u32>(b, 20);
  promptHashes(b, scratch);
  const weight = promptGive(b, slot);
  believe(slot, max(0, promptTake(b, slot, scratch, keep)) - weight);
}

/** Takes a rank away and ends its bookings and predictions. */
export function rankRemove(slot: u32): i32 {
  if (rowOf(slot) == NO_ROW) return UNKNOWN_RANK;
  const list = bookingListOf(slot);
  while (load<u32>(list)) end(load<u32>(list));
  rankDrop(slot);
  return OK;
}
