// Whether the names of one store differ from each other and from the parent's.
import { give, takeZeroed } from "../memory/arena";
import { INVALID_SEQUENCE, MEMORY_BUDGET, OK } from "../status";

const SEATS: u32 = 1 << 12;
// Indices (plus 1) of the names seen, open addressing, at most half full.
const seats: usize = memory.data(SEATS << 2, 16);

/** OK, INVALID_SEQUENCE, or MEMORY_BUDGET when there is no room to find out. */
export function distinct(hasParent: bool, parentName: u64, n: u32, names: usize): i32 {
  if (hasParent) {
    for (let j: u32 = 0; j < n; j++) if (load<u64>(names + (<usize>j << 3)) == parentName) return INVALID_SEQUENCE;
  }
  if (n < 2) return OK;
  const lg = 33 - <u32>clz<u32>(n - 1);
  if (lg > 30) return MEMORY_BUDGET;
  const bytes = <usize>4 << lg;
  if (bytes <= SEATS << 2) {
    memory.fill(seats, 0, bytes);
    return allDiffer(n, names, seats, lg) ? OK : INVALID_SEQUENCE;
  }
  const table = takeZeroed(bytes);
  if (!table) return MEMORY_BUDGET;
  const good = allDiffer(n, names, table, lg);
  give(table, bytes);
  return good ? OK : INVALID_SEQUENCE;
}

function allDiffer(n: u32, names: usize, table: usize, lg: u32): bool {
  const mask = ((<usize>1) << lg) - 1;
  for (let j: u32 = 0; j < n; j++) {
    const name = load<u64>(names + (<usize>j << 3));
    let i = <usize>((name * 0x9E3779B97F4A7C15) >> <u64>(64 - lg));
    for (let k = load<u32>(table + (i << 2)); k; k = load<u32>(table + (i << 2))) {
      if (load<u64>(names + (<usize>(k - 1) << 3)) == name) return false;
      i = (i + 1) & mask;
    }
    store<u32>(table + (i << 2), j + 1);
  }
  return true;
}
