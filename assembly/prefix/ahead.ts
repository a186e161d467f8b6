// Looking ahead: the names of a batch are unrelated places in memory. Reading the first lines of
// 32 of them in a row lets those reads overlap; WebAssembly has no prefetch instruction.
import { chunkAt, nameAddress, ownNames } from "./chunks";
import { nameGuess, nameHash, nameTouch } from "./names";

export const WINDOW: u32 = 32;
const hashes: usize = memory.data(WINDOW << 3, 16);
/** What was read; it is kept so that the reads are not optimised away. */
let sink: u64 = 0;

/** nameHash of the i-th name of the window. */
// @ts-ignore: decorator
@inline export function windowHash(i: u32): u64 {
  return load<u64>(hashes + (<usize>i << 3));
}

/** Hashes `count` ≤ 32 names and touches their groups in the name table. */
export function lookAhead(holder: u32, names: usize, count: u32): void {
  let read: u64 = 0;
  for (let i: u32 = 0; i < count; i++) {
    const o = <usize>i << 3;
    const hash = nameHash(holder, load<u64>(names + o));
    store<u64>(hashes + o, hash);
    read ^= nameTouch(hash);
  }
  sink = read;
}

/** Touches the chunks that the names of the window probably lie in. */
export function lookInside(count: u32): void {
  let read: u64 = 0;
  for (let i: u32 = 0; i < count; i++) {
    const position = nameGuess(windowHash(i));
    if (!position) continue;
    read ^= load<u64>(chunkAt(position >> 5));
    if (!ownNames) read ^= load<u64>(nameAddress(position));
  }
  sink = read;
}
