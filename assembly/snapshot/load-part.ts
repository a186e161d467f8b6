// The load part of a snapshot: bookings and the generator's state, as records of meaning and not of
// memory, so that they survive any change of layout. All are little-endian, their length a multiple
// of 8; `bytes` counts the whole record.
//
//   random   48 B     | kind 1 u32 | bytes u32 | - u64 | state 4 u64 |
//   ids      16 B     | kind 4 u32 | bytes u32 | one past the highest id u32 | - u32 |
//   free id  16 B     | kind 2 u32 | bytes u32 | id u32 | generation u32 |
//   booking  64 B + … | kind 3 u32 | bytes u32 | id u32 | generation u32 | slot u32 | own blocks u32 |
//                     | own weight i64 | prefill tokens f64 | blocks u32 | stretches u32 |
//                     | prefill duration f64, ms, −1 = not known | ms that it was the rank's front f64, −1 = it is not |
//                     | blocks × sequence hash u64 | stretches × (first u32, blocks u32, weight i64) |
//
// Ids stay as they are, so that handles which the host keeps stay good: how many there are comes
// first. A rank's bookings come in the order in which they were made, all before the free ids. A stretch is blocks of the prompt that do
// not weigh 1. Ranks must hold their slots before bookings are imported.
import { bookingFree, bookingRestore, bookingRestoreFree, OWN_MAX, PREFILL_MAX } from "../load/bookings";
import { promptBlocks, promptCut, promptHashes, promptWeigh, promptWeights } from "../load/prompts";
import { bookingPrefillDuration, prefillElapsed, prefillResume } from "../load/prefills";
import {
  BELIEVED,
  bookingListOf,
  chargeBlocks,
  NO_ROW,
  rankCount,
  rowOf,
  slotOf,
  WEIGHT_ONE,
  WEIGHT_SHIFT,
} from "../load/ranks";
import { bookingAt, bookingTop, idExpected, idsExpect } from "../load/records";
import { randomRestore, randomSave } from "../select/random";
import { BAD_RECORD, MEMORY_BUDGET, OK } from "../status";

const RANDOM: u32 = 1;
const FREE_ID: u32 = 2;
const BOOKING: u32 = 3;
const IDS: u32 = 4;
const RANDOM_BYTES: u32 = 48;
/** Also of the ids. */
const FREE_ID_BYTES: u32 = 16;
const HEAD_BYTES: u32 = 64;
/** More ms than any clock has counted. */
const MS_MAX: f64 = 1e15;

/** Whose bookings are written: −2 is the generator, −1 the ids, rankCount() the free ids. */
let row: i32 = 0;
/** The id to write. */
let next: u32 = 0;

/** Starts to write the load part: all bookings, and before them the generator's state if wanted. */
export function exportLoadBegin(random: bool): void {
  row = random ? -2 : -1;
}

function advance(): void {
  const ranks = <i32>rankCount();
  if (row == -2) {
    row = -1;
    return;
  }
  if (row == ranks) next++;
  else next = row < 0 ? 0 : load<u32>(bookingAt(next), 24);
  while (!next) next = ++row < ranks ? oldestOf(slotOf(row)) : 1;
  if (row == ranks) while (next < bookingTop() && load<u32>(bookingAt(next), 52)) next++;
}

/** The booking of a rank that was made first; 0 when it has none. */
function oldestOf(slot: u32): u32 {
  let id: u32 = 0;
  for (let older = load<u32>(bookingListOf(slot)); older; older = load<u32>(bookingAt(older), 28)) id = older;
  return id;
}

/** Bytes of the next record; 0 when all are written. */
export function exportLoadNeeds(): u32 {
  if (row < 0) return row == -2 ? RANDOM_BYTES : FREE_ID_BYTES;
  if (next >= bookingTop()) return 0;
  if (row == <i32>rankCount()) return FREE_ID_BYTES;
  const b = bookingAt(next);
  return HEAD_BYTES + (promptBlocks(b) << 3) + (promptWeights(b, load<u32>(b, 20), 0) << 4);
}

/**
 * Writes as many whole records as fit into `capacity` bytes at `out`: the bytes written, 0 when there
 * is nothing left, MEMORY_BUDGET when not even the next one fits (exportLoadNeeds() bytes). The load
 * must not change between calls.
 */
export function exportLoadNext(out: usize, capacity: u32): i32 {
  let written: u32 = 0;
  let bytes = exportLoadNeeds();
  while (bytes && bytes <= capacity - written) {
    write(out + written, bytes);
    written += bytes;
    advance();
    bytes = exportLoadNeeds();
  }
  return bytes && !written ? MEMORY_BUDGET : written;
}

function write(at: usize, bytes: u32): void {
  memory.fill(at, 0, min(bytes, HEAD_BYTES));
  store<u32>(at, bytes, 4);
  if (row == -2) {
    store<u32>(at, RANDOM);
    randomSave(at + 16);
    return;
  }
  if (row == -1) {
    store<u32>(at, IDS);
    store<u32>(at, bookingTop(), 8);
    return;
  }
  const b = bookingAt(next);
  store<u32>(at, next, 8);
  store<u32>(at, load<u32>(b, 16), 12);
  if (!load<u32>(b, 52)) {
    store<u32>(at, FREE_ID);
    return;
  }
  const slot = load<u32>(b, 20);
  const n = promptBlocks(b);
  const stretches = at + HEAD_BYTES + (<usize>n << 3);
  store<u32>(at, BOOKING);
  store<u32>(at, slot, 16);
  store<u32>(at, load<u32>(b, 48), 20);
  store<i64>(at, load<i64>(b, 32), 24);
  store<f64>(at, load<f64>(b, 40), 32);
  store<u32>(at, n, 40);
  store<f64>(at, load<f64>(b, 56), 48);
  store<f64>(at, prefillElapsed(next), 56);
  store<u32>(at, promptWeights(b, slot, stretches), 44);
  promptHashes(b, at + HEAD_BYTES);
}

/**
 * Applies one record that exportLoadNext() wrote, in that order, to a pool that had no booking when
 * the first came. BAD_RECORD: it is not what its kind requires; MEMORY_BUDGET: no room. The load is
 * then as before, but later records no longer fit.
 */
export function importLoadRecord(at: usize, bytes: u32): i32 {
  if (bytes < FREE_ID_BYTES || bytes & 7 || load<u32>(at, 4) != bytes) return BAD_RECORD;
  switch (load<u32>(at)) {
    case RANDOM:
      return bytes == RANDOM_BYTES && randomRestore(at + 16) ? OK : BAD_RECORD;
    case FREE_ID:
      if (bytes != FREE_ID_BYTES || !idExpected(load<u32>(at, 8))) return BAD_RECORD;
      bookingRestoreFree(load<u32>(at, 8), load<u32>(at, 12));
      return OK;
    case IDS:
      if (bytes != FREE_ID_BYTES || bookingTop() > 1) return BAD_RECORD;
      return idsExpect(load<u32>(at, 8)) ? OK : MEMORY_BUDGET;
    case BOOKING:
      return isBooking(at, bytes) ? importBooking(at) : BAD_RECORD;
    default:
      return BAD_RECORD;
  }
}

function isBooking(at: usize, bytes: u32): bool {
  if (bytes < HEAD_BYTES) return false;
  const slot = load<u32>(at, 16);
  const ownBlocks = load<u32>(at, 20);
  const ownWeight = load<i64>(at, 24);
  const prefill = load<f64>(at, 32);
  const n = load<u32>(at, 40);
  const stretches = load<u32>(at, 44);
  if (
    !idExpected(load<u32>(at, 8)) ||
    !isMs(load<f64>(at, 48)) ||
    !isMs(load<f64>(at, 56)) ||
    rowOf(slot & ~BELIEVED) == NO_ROW ||
    (slot & BELIEVED && stretches) ||
    ownBlocks > OWN_MAX ||
    ownWeight < 0 ||
    ownWeight > (<i64>ownBlocks) << WEIGHT_SHIFT ||
    !(prefill >= 0 && prefill <= PREFILL_MAX && Math.floor(prefill) == prefill) ||
    (<u64>n << 3) + (<u64>stretches << 4) + HEAD_BYTES != <u64>bytes
  ) {
    return false;
  }
  for (let s = at + HEAD_BYTES + (<usize>n << 3), end = at + bytes; s < end; s += 16) {
    const first = load<u32>(s);
    const blocks = load<u32>(s, 4);
    const weight = load<i64>(s, 8);
    if (!blocks || first >= n || blocks > n - first || weight < 0 || weight > WEIGHT_ONE) return false;
  }
  return true;
}

/** A time, or −1 for none. */
function isMs(ms: f64): bool {
  return ms == -1 || (ms >= 0 && ms <= MS_MAX);
}

function importBooking(at: usize): i32 {
  const id = load<u32>(at, 8);
  const slot = load<u32>(at, 16);
  const n = load<u32>(at, 40);
  const hashes = at + HEAD_BYTES;
  const generation = load<u32>(at, 12);
  if (!bookingRestore(id, generation, slot, hashes, n, load<u32>(at, 20), load<i64>(at, 24), load<f64>(at, 32))) {
    return MEMORY_BUDGET;
  }
  bookingPrefillDuration(id, generation, load<f64>(at, 48));
  prefillResume(id, load<f64>(at, 56));
  const b = bookingAt(id);
  let s = hashes + (<usize>n << 3);
  for (const end = s + (<usize>load<u32>(at, 44) << 4); s < end; s += 16) {
    const from = load<u32>(s);
    const to = from + load<u32>(s, 4);
    if (!promptCut(b, from) || !promptCut(b, to)) {
      bookingFree(id, generation);
      return MEMORY_BUDGET;
    }
    chargeBlocks(slot, promptWeigh(b, slot, from, to, load<i64>(s, 8), false));
  }
  return OK;
}
