// The load part of a snapshot: bookings and the generator's state, as records of meaning and not of
// memory, so that they survive any change of layout. All are little-endian, their length a multiple
// of 8; `bytes` counts the whole record.
//
//   random   48 B     | kind 1 u32 | bytes u32 | - u64 | state 4 u64 |
//   free id  16 B     | kind 2 u32 | bytes u32 | id u32 | generation u32 |
//   booking  56 B + … | kind 3 u32 | bytes u32 | id u32 | generation u32 | slot u32 | own blocks u32 |
//                     | own weight i64 | prefill tokens f64 | blocks u32 | stretches u32 | - u64 |
//                     | blocks × sequence hash u64 | stretches × (first u32, blocks u32, weight i64) |
//
// Ids come in order from 1, so that handles which the host keeps stay good. A stretch is blocks of
// the prompt that do not weigh 1. Ranks must hold their slots before bookings are imported.
import { bookingFree, bookingRestore, bookingRestoreFree, OWN_MAX, PREFILL_MAX } from "../load/bookings";
import { promptBlocks, promptCut, promptHashes, promptWeigh, promptWeights } from "../load/prompts";
import { BELIEVED, chargeBlocks, NO_ROW, rowOf, WEIGHT_ONE, WEIGHT_SHIFT } from "../load/ranks";
import { bookingAt, bookingTop } from "../load/records";
import { randomRestore, randomSave } from "../select/random";
import { BAD_RECORD, MEMORY_BUDGET, OK } from "../status";

const RANDOM: u32 = 1;
const FREE_ID: u32 = 2;
const BOOKING: u32 = 3;
const RANDOM_BYTES: u32 = 48;
const FREE_ID_BYTES: u32 = 16;
const HEAD_BYTES: u32 = 56;

/** The next id to write; 0 for the generator. */
let next: u32 = 0;

/** Starts to write the load part: all bookings, and before them the generator's state if wanted. */
export function exportLoadBegin(random: bool): void {
  next = random ? 0 : 1;
}

/** Bytes of the next record; 0 when all are written. */
export function exportLoadNeeds(): u32 {
  if (!next) return RANDOM_BYTES;
  if (next >= bookingTop()) return 0;
  const b = bookingAt(next);
  if (!load<u32>(b, 52)) return FREE_ID_BYTES;
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
    next++;
    bytes = exportLoadNeeds();
  }
  return bytes && !written ? MEMORY_BUDGET : written;
}

function write(at: usize, bytes: u32): void {
  memory.fill(at, 0, min(bytes, HEAD_BYTES));
  store<u32>(at, bytes, 4);
  if (!next) {
    store<u32>(at, RANDOM);
    randomSave(at + 16);
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
      if (bytes != FREE_ID_BYTES || load<u32>(at, 8) != bookingTop()) return BAD_RECORD;
      return bookingRestoreFree(load<u32>(at, 12)) ? OK : MEMORY_BUDGET;
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
    load<u32>(at, 8) != bookingTop() ||
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

function importBooking(at: usize): i32 {
  const id = bookingTop();
  const slot = load<u32>(at, 16);
  const n = load<u32>(at, 40);
  const hashes = at + HEAD_BYTES;
  const generation = load<u32>(at, 12);
  if (!bookingRestore(generation, slot, hashes, n, load<u32>(at, 20), load<i64>(at, 24), load<f64>(at, 32))) {
    return MEMORY_BUDGET;
  }
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
