// Holders: the ranks that work on a run, how many of their requests cover it, and what its blocks
// weigh on each (the record is drawn in runs.ts).
import { extentCapacity, extentGive, extentTake } from "../memory/extents";
import { WEIGHT_ONE } from "./ranks";
import { HOLDER_BYTES, holdersOf, runAt, runHolders } from "./runs";

/** Address where the rank's holder is or belongs. */
function holderPlace(run: u32, slot: u32): usize {
  const base = holdersOf(run);
  let low: u32 = 0;
  let high = runHolders(run);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (load<u32>(base + ((<usize>middle) << 4)) < slot) low = middle + 1;
    else high = middle;
  }
  return base + ((<usize>low) << 4);
}

// @ts-ignore: decorator
@inline function isHolder(run: u32, slot: u32, place: usize): bool {
  return place < holdersOf(run) + ((<usize>runHolders(run)) << 4) && load<u32>(place) == slot;
}

/** The rank's holder in this run; 0 when it has none. */
export function holderOf(run: u32, slot: u32): usize {
  const place = holderPlace(run, slot);
  return isHolder(run, slot, place) ? place : 0;
}

/** One more request of a rank covers the run: the weight this adds to the rank, -1 when there is no room. */
export function runHold(run: u32, slot: u32): i64 {
  let place = holderPlace(run, slot);
  if (isHolder(run, slot, place)) {
    store<u32>(place, load<u32>(place, 4) + 1, 4);
    return 0;
  }
  const r = runAt(run);
  const n = load<u32>(r, 32);
  const room = load<u32>(r, 36) >> 1;
  if (n == max<u32>(room, 1)) {
    const start = extentTake(max<u32>(n << 2, 8));
    if (!start) return -1;
    const base = holdersOf(run);
    memory.copy(<usize>start << 3, base, (<usize>n) << 4);
    place = (<usize>start << 3) + (place - base);
    if (room) extentGive(load<u32>(r, 40), load<u32>(r, 36));
    store<u32>(r, extentCapacity, 36);
    store<u32>(r, start, 40);
  }
  const end = holdersOf(run) + ((<usize>n) << 4);
  memory.copy(place + HOLDER_BYTES, place, end - place);
  store<u32>(place, slot);
  store<u32>(place, 1, 4);
  store<i64>(place, WEIGHT_ONE, 8);
  store<u32>(r, n + 1, 32);
  return WEIGHT_ONE * <i64>load<u32>(r, 8);
}

/** One request of a rank less covers the run: the weight this takes from the rank. */
export function runLetGo(run: u32, slot: u32): i64 {
  const place = holderPlace(run, slot);
  const refs = load<u32>(place, 4) - 1;
  store<u32>(place, refs, 4);
  if (refs) return 0;
  const r = runAt(run);
  const weight = load<i64>(place, 8) * <i64>load<u32>(r, 8);
  const n = load<u32>(r, 32) - 1;
  const end = holdersOf(run) + ((<usize>n) << 4);
  memory.copy(place, place + HOLDER_BYTES, end - place);
  store<u32>(r, n, 32);
  return weight;
}
