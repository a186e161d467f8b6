// Holders: the ranks that work on a run, how many of their requests cover it, and what its blocks
// weigh on each (the record is drawn in runs.ts).
import { extentCapacity, extentGive, extentTake } from "../memory/extents";
import { WEIGHT_ONE } from "./ranks";
import { holderBytes, holdersOf, runLength } from "./runs";

const HOLDER_BYTES: usize = 16;

/** Address of the rank's holder in the run at `r`, or, when it has none, of where it belongs. */
export function holderPlace(r: usize, slot: u32): usize {
  const base = holdersOf(r);
  let low: u32 = 0;
  let high = load<u32>(r, 32);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (load<u32>(base + (<usize>middle << 4)) < slot) low = middle + 1;
    else high = middle;
  }
  return base + (<usize>low << 4);
}

/** One more request of a rank covers the run at `r`: the weight this adds to the rank, -1 when there is no room. */
export function runHold(r: usize, slot: u32): i64 {
  let place = holderPlace(r, slot);
  const n = load<u32>(r, 32);
  let base = holdersOf(r);
  if (place < base + holderBytes(r) && load<u32>(place) == slot) {
    store<u32>(place, load<u32>(place, 4) + 1, 4);
    return 0;
  }
  const capacity = load<u32>(r, 36);
  if (n == max<u32>(capacity >> 1, 1)) {
    const start = extentTake(n << 2);
    if (!start) return -1;
    const wider = <usize>start << 3;
    memory.copy(wider, base, holderBytes(r));
    place = wider + (place - base);
    base = wider;
    if (capacity) extentGive(load<u32>(r, 40), capacity);
    store<u32>(r, extentCapacity, 36);
    store<u32>(r, start, 40);
  }
  memory.copy(place + HOLDER_BYTES, place, base + holderBytes(r) - place);
  store<u32>(place, slot);
  store<u32>(place, 1, 4);
  store<i64>(place, WEIGHT_ONE, 8);
  store<u32>(r, n + 1, 32);
  return WEIGHT_ONE * <i64>runLength(r);
}

/** One request of a rank less covers the run at `r`: the weight this takes from the rank. */
export function runLetGo(r: usize, slot: u32): i64 {
  const place = holderPlace(r, slot);
  const refs = load<u32>(place, 4) - 1;
  store<u32>(place, refs, 4);
  if (refs) return 0;
  const weight = load<i64>(place, 8) * <i64>runLength(r);
  const end = holdersOf(r) + holderBytes(r);
  memory.copy(place, place + HOLDER_BYTES, end - place - HOLDER_BYTES);
  store<u32>(r, load<u32>(r, 32) - 1, 32);
  return weight;
}
