// Records of what ranks have taken on: bookings, the load charged to a rank for one request.
//
//   record 64 B
//   | first piece of the prompt's path, 16 B (prompts.ts) |
//   | generation u32 | slot u32 | previous u32 | next u32 |     ids in the rank's list, newest first
//   | weight of its own blocks i64 | prefill tokens f64 |
//   | own blocks u32 | live u32 | prefill duration f64, ms, below 0 = not known |
//
// A handle is an id and the generation it was given out with; giving a record back raises the
// generation, so a late call cannot touch whoever has the id next. Free ids are chained by `next`.
import { arenaBudget } from "../memory/arena";
import { slabAt, slabDirectory, slabNew, slabTake, slabTop } from "../memory/slab";

const RECORD_BYTES: u32 = 64;
/** In the place of `previous`. */
const EXPECTED: u32 = 0xffffffff;

let records: usize = 0;
let directory: usize = 0;
let free: u32 = 0;

/** Starts without records; false when there is no room. */
export function recordsInit(): bool {
  free = 0;
  records = slabNew(RECORD_BYTES);
  if (!records) return false;
  directory = slabDirectory(records);
  return true;
}

/** One past the highest id ever given out. */
export function bookingTop(): u32 {
  return slabTop(records);
}

export function bookingAt(id: u32): usize {
  return slabAt(directory, RECORD_BYTES, id);
}

/** The generation of a booking, the second half of its handle; 0 for an id that was never given out. */
export function bookingGeneration(id: u32): u32 {
  return id && id < bookingTop() ? load<u32>(bookingAt(id), 16) : 0;
}

/** Address of a live record; 0 when this handle is not one. */
export function recordOf(id: u32, generation: u32): usize {
  if (!id || id >= bookingTop()) return 0;
  const b = bookingAt(id);
  return load<u32>(b, 52) != 0 && load<u32>(b, 16) == generation ? b : 0;
}

/** A record that nobody has, its generation kept; 0 when there is no room. */
export function idTake(): u32 {
  if (!free) return idAppend();
  const id = free;
  free = load<u32>(bookingAt(id), 28);
  return id;
}

/** A record beyond the last. */
function idAppend(): u32 {
  const id = slabTake(records);
  if (id) memory.fill(bookingAt(id), 0, RECORD_BYTES);
  return id;
}

/** Makes the records below `top`, each expected to be told what it is; false when there is no room. */
export function idsExpect(top: u32): bool {
  if (<u64>top * RECORD_BYTES > arenaBudget()) return false;
  while (bookingTop() < top) {
    const id = idAppend();
    if (!id) return false;
    store<u32>(bookingAt(id), EXPECTED, 24);
  }
  return true;
}

/** Whether nobody has told yet what a record is; nobody can do so twice. */
export function idExpected(id: u32): bool {
  return id < bookingTop() && id && load<u32>(bookingAt(id), 24) == EXPECTED;
}

export function idGive(id: u32): void {
  const b = bookingAt(id);
  store<u32>(b, 0, 24);
  store<u32>(b, free, 28);
  store<u32>(b, 0, 52);
  free = id;
}
