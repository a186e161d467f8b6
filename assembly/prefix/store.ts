// Storing a chain of blocks for one rank in one tier.
import { chainBlocks } from "../hash/chain";
import { FOREIGN_NAME, MEMORY_BUDGET, OK, ORPHAN, UNKNOWN_RANK } from "../status";
import { lookAhead, WINDOW, windowHash } from "./ahead";
import { chunkAt, chunkLane, nameAddress, offsetAt, ownNames, positionIn, sequenceAt } from "./chunks";
import { distinct } from "./distinct";
import { countDuplicate, heldInTier, hold, letGo, trimRun } from "./holding";
import { LANE_NEXT, holderOf, laneDemote, laneFind, laneHolder, laneNew, laneRun, rankLimit, TIERS } from "./lanes";
import { nameDrop, nameFind, nameHash } from "./names";
import { reserveEnd, reserveStore } from "./reserve";
import {
  hashAt,
  RUN_FULL,
  RUN_LOWER,
  RUN_MAX,
  RUN_PARTIAL,
  RUN_SET,
  runAppend,
  runFind,
  runLength,
  runNew,
  runTighten,
} from "./runs";
import { setTag } from "./sets";
import { splitIfCrowded } from "./split";

/** A run with more lanes than this is not lengthened. */
const LENGTHEN_LANES: u32 = 4;

// Where the last block went: its run, the offset behind it, and the holder's lane there (0 = not looked up).
let run: usize = 0;
let offset: u32 = 0;
let lane: usize = 0;
/** The run that this store has begun to lengthen. */
let lengthened: usize = 0;

/** Points behind the block at a position. */
function follow(position: u32): void {
  const p = chunkAt(position >> 5);
  lane = chunkLane(p);
  run = laneRun(lane);
  offset = offsetAt(p, position) + 1;
}

/**
 * A rank stores `n` blocks behind the block it calls `parentName`, or at the root.
 * `names` are the engine's names u64[n], `locals` the local hashes u64[n], which are replaced by
 * sequence hashes. Answers OK, ORPHAN, INVALID_SEQUENCE, FOREIGN_NAME, UNKNOWN_RANK or MEMORY_BUDGET;
 * unless it is OK nothing has changed.
 */
export function indexStore(
  slot: u32,
  tier: u32,
  hasParent: bool,
  parentName: u64,
  n: u32,
  names: usize,
  locals: usize,
): i32 {
  if (slot >= rankLimit || tier >= TIERS) return UNKNOWN_RANK;
  run = 0;
  offset = 0;
  lane = 0;
  if (hasParent && !findParent(slot, tier, parentName)) return ORPHAN;
  chainBlocks(locals, n, locals, hasParent, hasParent ? hashAt(run, offset - 1) : 0);
  return storeChain(holderOf(slot, tier), hasParent, parentName, n, names, locals);
}

/** As indexStore() at the root, with sequence hashes u64[n] in place of local ones; `names` may be the same address. */
export function indexStoreSequence(slot: u32, tier: u32, n: u32, sequences: usize, names: usize): i32 {
  if (slot >= rankLimit || tier >= TIERS) return UNKNOWN_RANK;
  run = 0;
  offset = 0;
  lane = 0;
  return storeChain(holderOf(slot, tier), false, 0, n, names, sequences);
}

/** Looks a parent up in the tier of the store first, then in the others. */
function findParent(slot: u32, tier: u32, name: u64): bool {
  for (let k: u32 = 0; k < TIERS; k++) {
    const t = (tier + k) & (TIERS - 1);
    if (!heldInTier(t)) continue;
    const holder = holderOf(slot, t);
    const position = nameFind(nameHash(holder, name), holder, name);
    if (!position) continue;
    follow(position);
    if (k) lane = 0;
    return true;
  }
  return false;
}

function storeChain(holder: u32, hasParent: bool, parentName: u64, n: u32, names: usize, sequences: usize): i32 {
  if (ownNames && names != sequences && memory.compare(names, sequences, <usize>n << 3)) return FOREIGN_NAME;
  const fault = distinct(hasParent, parentName, n, names);
  if (fault) return fault;
  if (!reserveStore(holder, n, sequences, names, run, offset)) return MEMORY_BUDGET;
  const done = apply(holder, n, names, sequences);
  reserveEnd();
  return done ? OK : MEMORY_BUDGET;
}

/** Applies a store that was found good; room was made, so it does not fail. */
function apply(holder: u32, n: u32, names: usize, sequences: usize): bool {
  let window: u32 = 0; // the window looked ahead to: from this name
  let windowEnd: u32 = 0;
  lengthened = 0;
  for (let j: u32 = 0; j < n; j++) {
    const o = <usize>j << 3;
    const name = load<u64>(names + o);
    const sequence = load<u64>(sequences + o);
    if (lane && isNext(name, sequence)) {
      offset++;
      countDuplicate();
      continue;
    }
    if (j >= windowEnd) {
      window = j;
      windowEnd = min(j + WINDOW, n);
      lookAhead(holder, names + o, windowEnd - j);
    }
    const hash = windowHash(j - window);
    if (!ownNames) {
      const position = nameFind(hash, holder, name);
      if (position) {
        if (sequenceAt(position) == sequence) {
          const before = run;
          follow(position);
          if (before != run) turn(before);
          countDuplicate();
          continue;
        }
        // The name has moved to this block; the one it meant is gone.
        nameDrop();
        const open = letGo(position);
        if (open) trimRun(open);
      }
    }
    if (!advance(holder, sequence, n - j)) return false;
    if (!lane) lane = laneFind(run, holder);
    if (!lane) lane = laneNew(run, holder);
    if (!lane || !hold(lane, offset, name, hash)) return false;
    offset++;
  }
  turn(run);
  return true;
}

/** True when the next block of the lane is this one, held under this name. */
function isNext(name: u64, sequence: u64): bool {
  if (offset >= runLength(run) || hashAt(run, offset) != sequence) return false;
  const position = positionIn(lane, offset);
  return position != 0 && (ownNames || load<u64>(nameAddress(position)) == name);
}

/** Finds or makes the place of the next block; `left` blocks are still to come, this one included. */
function advance(holder: u32, sequence: u64, left: u32): bool {
  const length = run ? runLength(run) : 0;
  if (offset < length && hashAt(run, offset) == sequence) return true;
  const known = runFind(sequence);
  const atEnd = !known && run && offset == length && length < RUN_MAX;
  if (atEnd && mayLengthen(holder) && runAppend(run, sequence, left)) return true;
  turn(run);
  run = known ? known : runNew(sequence, left);
  offset = 0;
  lane = 0;
  return run != 0;
}

/** A run is lengthened in place while few hold it; with more holders the branch becomes a run of its own. */
function mayLengthen(holder: u32): bool {
  if (run == lengthened) return true;
  if (setTag(load<u64>(run, RUN_SET)) > 1) return false;
  const partial = lanesUpTo(load<usize>(run, RUN_PARTIAL), lanesUpTo(load<usize>(run, RUN_FULL), 0));
  if (lanesUpTo(load<usize>(run, RUN_LOWER), partial) > LENGTHEN_LANES) return false;
  // Who held all of the run no longer will; the holder's own lane gets each block at once.
  const full = load<usize>(run, RUN_FULL);
  if (full && laneHolder(full) != holder) laneDemote(full);
  lengthened = run;
  return true;
}

function lanesUpTo(lane: usize, count: u32): u32 {
  for (; lane && count <= LENGTHEN_LANES; lane = load<usize>(lane, LANE_NEXT)) count++;
  return count;
}

/** The store turns away from a run. */
function turn(from: usize): void {
  lengthened = 0;
  if (!from) return;
  runTighten(from);
  splitIfCrowded(from);
}
