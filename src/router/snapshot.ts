// Snapshots of a router: every pool's records in one container (snapshot-format.ts).
import { WarmrouteError } from "../core/errors.js";
import { describe } from "../core/ids.js";
import { BELIEVED, Counter } from "../kernel/abi.js";
import type { Kernel } from "../kernel/kernel.js";
import type { BookingState } from "../scheduling/bookings/booking.js";
import { exportPart, importPart, Part, renameLoad, type WantedLoad } from "../scheduling/pool-records.js";
import { flagsOf } from "../scheduling/ranks.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
import type { RestoreResult, SnapshotPart } from "./contract.js";
import { packSnapshot, type SnapshotDocument, type SnapshotPool, unpackSnapshot } from "./snapshot-format.js";

interface RouterState {
  model: string;
  blockSize: number;
  ownNames: boolean;
  pools: ReadonlyMap<string, SelectionCore>;
}

const nothing = new Uint8Array(0);

/** The chosen parts of every pool, as bytes. */
export function writeSnapshot(router: RouterState, parts: readonly SnapshotPart[]): Uint8Array {
  const records: Uint8Array[] = [];
  const pools: SnapshotPool[] = [];
  for (const [name, core] of router.pools) {
    core.refresh();
    const ranks = [...core.ranks].map(({ slot, workerId, dpRank, record: { incarnation } }) => ({
      slot,
      workerId,
      dpRank,
      ...(incarnation === undefined ? {} : { incarnation }),
    }));
    const index = parts.includes("index") ? exportPart(core.kernel, Part.index) : nothing;
    const load = loadOf(core, ownSlots(core), parts);
    const bookings = parts.includes("load") ? core.bookings.map(bookingFields) : [];
    const predictions = parts.includes("load") ? core.predictions?.states() : undefined;
    const sizes = { indexBytes: index.length, loadBytes: load.length };
    pools.push({ name, ranks, bookings, ...(predictions && { predictions }), ...sizes });
    records.push(index, load);
  }
  const { model, blockSize, ownNames } = router;
  return packSnapshot({ model, blockSize, ownNames, parts: [...parts], pools }, records);
}

function bookingFields(booking: BookingState): BookingState {
  const { requestId, id, generation, slot, inputTokens, generated, expectedOutputTokens } = booking;
  return { requestId, id, generation, slot, inputTokens, generated, expectedOutputTokens };
}

const ownSlots = (core: SelectionCore): Map<number, number> => new Map([...core.ranks].map(({ slot }) => [slot, slot]));

/** Which records of the load are wanted for a pool. */
function wantedOf(core: SelectionCore, parts: readonly SnapshotPart[]): WantedLoad {
  const bookings = parts.includes("load");
  return { random: parts.includes("random"), bookings, predictions: bookings && core.predictions !== undefined };
}

function loadOf(core: SelectionCore, slots: ReadonlyMap<number, number>, parts: readonly SnapshotPart[]): Uint8Array {
  const want = wantedOf(core, parts);
  return want.random || want.bookings ? renameLoad(exportPart(core.kernel, Part.load), slots, want) : nothing;
}

/**
 * Replaces the chosen parts of each pool that the snapshot knows, ranks matched by worker id and rank. What the
 * snapshot says of ranks that are not here is dropped, and counted in the answer; parts that are not chosen stay as
 * they are. All pools are built anew before any is changed, so a refusal changes nothing. Throws `snapshot_<reason>`
 * or `memory_budget`.
 */
export function readSnapshot(
  bytes: Uint8Array,
  router: RouterState,
  newKernel: (pool: string) => Kernel,
  parts: readonly SnapshotPart[],
): RestoreResult {
  const { document, records } = unpackSnapshot(bytes);
  const here = optionsOf(router);
  for (const [field, value] of Object.entries(optionsOf(document))) {
    const own = here[field];
    if (value === own) continue;
    const message = `its ${field} is ${describe(value)}, but this router's is ${describe(own)}`;
    throw mismatch(message, { field, snapshot: value, router: own });
  }
  for (const part of parts) {
    if (document.parts.includes(part)) continue;
    const has = document.parts.join(", ") || "nothing";
    throw mismatch(`it does not have the part ${part}, only ${has}`, { part, has: document.parts });
  }
  if (parts.includes("load")) checkRequestIds(document, router);
  for (const core of router.pools.values()) core.kernel.assertFree();
  const built = document.pools.flatMap((pool, i) => {
    const core = router.pools.get(pool.name);
    return core ? [rebuild(core, pool, records[i]!, newKernel(pool.name), parts)] : [];
  });
  for (const finish of built) finish();
  return counted(document, router, parts.includes("load"));
}

/** What must be the same in a snapshot and its router, by the names of the options. */
const optionsOf = ({ model, blockSize, ownNames }: Omit<RouterState, "pools">): Record<string, unknown> => ({
  model,
  blockSize,
  blockNames: ownNames ? "sequence" : "engine",
});

const mismatch = (what: string, details: Record<string, unknown>) =>
  new WarmrouteError("snapshot_mismatch", `cannot restore the snapshot: ${what}`, { details });

/** How many of the snapshot's ranks and bookings have a place here. */
function counted({ pools }: SnapshotDocument, router: RouterState, withLoad: boolean): RestoreResult {
  const result = { ranks: 0, droppedRanks: 0, droppedBookings: 0 };
  for (const { name, ranks, bookings } of pools) {
    const core = router.pools.get(name);
    const dropped = ranks.filter(({ workerId, dpRank }) => !core?.ranks.get(BigInt(workerId).toString(), dpRank));
    const slots = new Set(dropped.map(({ slot }) => slot));
    result.ranks += ranks.length - dropped.length;
    result.droppedRanks += dropped.length;
    if (withLoad) result.droppedBookings += bookings.filter(({ slot }) => slots.has(slot)).length;
  }
  return result;
}

/** Builds a kernel with the wanted state; answers the step that puts it in place. */
function rebuild(
  core: SelectionCore,
  pool: SnapshotPool,
  records: { index: Uint8Array; load: Uint8Array },
  kernel: Kernel,
  parts: readonly SnapshotPart[],
): () => void {
  const chosen = (part: SnapshotPart) => parts.includes(part);
  const others = (["index", "load", "random"] as const).filter((part) => !chosen(part));
  const layout = chosen("index") ? slotsAs(core, pool) : new Map([...core.ranks].map((rank) => [rank.slot, rank.slot]));
  for (const rank of core.ranks) {
    const status = kernel.exports.rankAdd(
      layout.get(rank.slot)!,
      BigInt.asIntN(64, BigInt(rank.workerId)),
      rank.dpRank,
    );
    if (status !== 0) throw new WarmrouteError("memory_budget", "the memory budget does not allow the pool's ranks");
    kernel.exports.rankFlags(layout.get(rank.slot)!, flagsOf(rank.overloaded, rank.available));
  }
  kernel.exports.prefillClock(core.clock.now());
  importPart(kernel, Part.index, chosen("index") ? records.index : exportPart(core.kernel, Part.index));
  kernel.exports.importEnd();

  const fromSnapshot = new Map<number, number>();
  for (const { slot, workerId, dpRank } of pool.ranks) {
    const here = core.ranks.get(BigInt(workerId).toString(), dpRank);
    if (here) fromSnapshot.set(slot, layout.get(here.slot)!);
  }
  const wanted = wantedOf(core, parts);
  const handles = pool.bookings.filter((booking) => fromSnapshot.has(booking.slot));
  const given = wanted.predictions ? (pool.predictions ?? []) : [];
  const predictions = given.filter((prediction) => fromSnapshot.has(prediction.slot));
  importPart(kernel, Part.load, renameLoad(records.load, fromSnapshot, wanted));
  if (chosen("load")) {
    checkRecords(kernel, handles, fromSnapshot, Counter.liveBookings);
    checkRecords(kernel, predictions, fromSnapshot, Counter.predictions);
  }
  importPart(kernel, Part.load, loadOf(core, layout, others));
  return () =>
    core.adopt(kernel, layout, chosen("load") ? { bookings: handles, predictions, slots: fromSnapshot } : undefined);
}

/** No request of the snapshot is live in a pool that the snapshot leaves as it is. */
function checkRequestIds({ pools }: SnapshotDocument, router: RouterState): void {
  const restored = new Set(pools.map((pool) => pool.name));
  const elsewhere = [...router.pools].filter(([name]) => !restored.has(name)).flatMap(([, core]) => core.bookings);
  const live = new Set(elsewhere.map((booking) => booking.requestId));
  const taken = pools.flatMap((pool) => pool.bookings).find((booking) => live.has(booking.requestId));
  if (taken) {
    throw mismatch("a request of it is live in another routing group", { requestId: taken.requestId });
  }
}

/** Every handle names a live record of its kind on its own rank, and every such record has one handle. */
function checkRecords(
  kernel: Kernel,
  handles: readonly Pick<BookingState, "id" | "generation" | "slot">[],
  slots: ReadonlyMap<number, number>,
  kind: typeof Counter.liveBookings | typeof Counter.predictions,
): void {
  const ids = new Set(handles.map((handle) => handle.id));
  const bit = kind === Counter.predictions ? BELIEVED : 0;
  const fits = handles.every(
    ({ id, generation, slot }) => kernel.exports.bookingSlot(id, generation) >>> 0 === slots.get(slot)! + bit,
  );
  if (!fits || ids.size !== handles.length || kernel.exports.counter(kind) !== handles.length) {
    const what = kind === Counter.predictions ? "predictions" : "bookings";
    throw new WarmrouteError("snapshot_corrupt", `cannot restore: the ${what} do not match their records`);
  }
}

/** New slots for a pool's ranks: the snapshot's for those it knows, unused ones for the rest. */
function slotsAs(core: SelectionCore, pool: SnapshotPool): Map<number, number> {
  const used = new Set(pool.ranks.map((rank) => rank.slot));
  const known = new Map(pool.ranks.map((rank) => [`${BigInt(rank.workerId)}/${rank.dpRank}`, rank.slot]));
  if (used.size !== pool.ranks.length || known.size !== pool.ranks.length) {
    throw new WarmrouteError("snapshot_corrupt", "cannot restore: two ranks share a slot or a name");
  }
  const layout = new Map<number, number>();
  let next = 0;
  for (const rank of core.ranks) {
    let slot = known.get(`${rank.workerId}/${rank.dpRank}`);
    if (slot === undefined) {
      while (used.has(next)) next++;
      slot = next++;
    }
    layout.set(rank.slot, slot);
  }
  const { maxRanks } = core.kernel;
  const needed = 1 + [...used, ...layout.values()].reduce((a, b) => Math.max(a, b), 0);
  if (needed > maxRanks) {
    const message = `maxRanks is ${maxRanks} here, but its ranks and this router's need ${needed}`;
    throw mismatch(message, { field: "maxRanks", snapshot: needed, router: maxRanks });
  }
  return layout;
}
