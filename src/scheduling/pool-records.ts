import { WarmrouteError } from "../core/errors.js";
import { BELIEVED } from "../kernel/abi.js";
import { budgetError, type Kernel } from "../kernel/kernel.js";
import { Status } from "../kernel/status.js";

/** Parts of a pool's records (assembly/index.ts). */
export const Part = { index: 0, load: 1 } as const;
export type PartNumber = (typeof Part)[keyof typeof Part];

const ROOM = 1 << 18;

/** Kinds of records that name a slot, with its offset (assembly/snapshot/). */
const LOAD = { random: 1, freeId: 2, booking: 3 } as const;
const BOOKING_SLOT = 16;

/** All records of one part. The pool must not change meanwhile, which it cannot: this is one step. */
export function exportPart(kernel: Kernel, part: PartNumber): Uint8Array {
  const chunks: Uint8Array[] = [];
  kernel.exports.exportBegin(part);
  for (let needs = kernel.exports.exportNeeds(); needs > 0; needs = kernel.exports.exportNeeds()) {
    const room = Math.max(ROOM, needs);
    const pointer = kernel.exports.recordsArea(room) >>> 0;
    if (pointer === 0) throw budgetError("a snapshot");
    kernel.sync();
    const written = kernel.exports.exportNext(room);
    if (written <= 0) throw budgetError("a snapshot");
    chunks.push(kernel.bytes(pointer, written).slice());
  }
  kernel.exports.recordsArea(0);
  return concat(chunks);
}

/** Applies records to a fresh kernel. Throws `snapshot_corrupt` or `memory_budget`; the kernel is then spent. */
export function importPart(kernel: Kernel, part: PartNumber, records: Uint8Array): void {
  for (const [from, to] of batches(records)) {
    const pointer = kernel.exports.recordsArea(Math.max(ROOM, to - from)) >>> 0;
    if (pointer === 0) throw budgetError("the snapshot's content");
    kernel.sync();
    kernel.bytes(pointer, to - from).set(records.subarray(from, to));
    const status = kernel.exports.importRecords(part, to - from);
    if (status === Status.memoryBudget) throw budgetError("the snapshot's content");
    if (status !== Status.ok) throw corrupt();
  }
  kernel.exports.recordsArea(0);
}

function corrupt(): WarmrouteError {
  return new WarmrouteError("snapshot_corrupt", "cannot restore: a record contradicts itself or another one");
}

/** Offsets of each record; throws `snapshot_corrupt` when lengths do not add up. */
function* eachRecord(records: Uint8Array): Generator<[at: number, length: number]> {
  const view = new DataView(records.buffer, records.byteOffset, records.length);
  for (let at = 0; at < records.length; ) {
    const length = records.length - at >= 8 ? view.getUint32(at + 4, true) : 0;
    if (length < 8 || length % 8 !== 0 || length > records.length - at) throw corrupt();
    yield [at, length];
    at += length;
  }
}

/** Stretches of whole records, each within the usual room unless one record alone is longer. */
function* batches(records: Uint8Array): Generator<[from: number, to: number]> {
  let from = 0;
  let to = 0;
  for (const [at, length] of eachRecord(records)) {
    if (at + length - from > ROOM && to > from) {
      yield [from, to];
      from = to;
    }
    to = at + length;
  }
  if (to > from) yield [from, to];
}

/** What of the load is kept. */
export interface WantedLoad {
  random: boolean;
  bookings: boolean;
  /** Only with bookings. */
  predictions: boolean;
}

/**
 * Load records with their slots renamed; a booking or prediction whose slot has no new name becomes a free id, so that later
 * ids stay as they are, and so does a prediction where none are wanted.
 */
export function renameLoad(records: Uint8Array, slots: ReadonlyMap<number, number>, want: WantedLoad): Uint8Array {
  const out: Uint8Array[] = [];
  for (const [at, length] of eachRecord(records)) {
    const record = records.slice(at, at + length);
    const view = new DataView(record.buffer);
    const kind = view.getUint32(0, true);
    if (kind === LOAD.random ? !want.random : !want.bookings) continue;
    if (kind !== LOAD.booking) {
      out.push(record);
      continue;
    }
    if (length < BOOKING_SLOT + 4) throw corrupt();
    const named = view.getUint32(BOOKING_SLOT, true);
    const believed = named >= BELIEVED ? BELIEVED : 0;
    const slot = believed && !want.predictions ? undefined : slots.get(named - believed);
    if (slot === undefined) {
      view.setUint32(0, LOAD.freeId, true);
      view.setUint32(4, 16, true);
      view.setUint32(12, view.getUint32(12, true) + 1, true);
      out.push(record.subarray(0, 16));
    } else {
      view.setUint32(BOOKING_SLOT, slot + believed, true);
      out.push(record);
    }
  }
  return concat(out);
}

function concat(chunks: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(chunks.reduce((n, chunk) => n + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
