// The packed columns of candidates (assembly/select/candidates.ts), against what the pool says by other verbs.
import { describe, expect, it } from "vitest";
import type { WorkerInput } from "../../src/core/types.js";
import { Answer } from "../../src/kernel/abi.js";
import { WorkerInputs } from "../../src/plugins/worker-selection/components.js";
import type { WorkerFilter } from "../../src/plugins/worker-selection/contract.js";
import { perRow } from "../../src/plugins/worker-selection/per-row.js";
import type { PoolRequest } from "../../src/scheduling/pool.js";
import type { SelectionCore } from "../../src/scheduling/selection-core.js";
import { corePool, custom, holds, load, noted, type PoolSetUp, prompt, SIZE, workers } from "./pool.js";

const everything = WorkerInputs.CACHE | WorkerInputs.LOAD | WorkerInputs.PREFERRED_TAINT;

interface Row {
  slot: number;
  workerId: string;
  dpRank: number;
  device: number;
  host: number;
  disk: number;
  shared: number;
  estimatedBlocks: number;
  estimatedTokens: number;
  isAvailable: number;
  prefill: number;
  decodeCost: number;
  requests: number;
  multiplier: number | undefined;
}

interface Seen {
  rows: Row[];
  hasTierMatches: boolean;
}

/** A pool whose policy notes every row that its scorer sees, and takes the lowest decode cost. */
function noting(setUp: PoolSetUp & { filters?: WorkerFilter[] }): { core: SelectionCore; seen: Seen[] } {
  const seen: Seen[] = [];
  const scorer = {
    requiredInputs: everything,
    score: (_: unknown, view: Parameters<WorkerFilter["keep"]>[1], costs: Float64Array) => {
      const { slot, dpRank, preferredTaintMultiplier } = view;
      const cache = view.cache!;
      const busy = view.load!;
      const rows = Array.from({ length: view.length }, (_, row) => ({
        slot: slot[row]!,
        workerId: view.workerId(row),
        dpRank: dpRank[row]!,
        device: cache.deviceOverlapBlocks[row]!,
        host: cache.hostOverlapBlocks[row]!,
        disk: cache.diskOverlapBlocks[row]!,
        shared: cache.sharedBeyondDeviceBlocks[row]!,
        estimatedBlocks: cache.estimatedBlocks[row]!,
        estimatedTokens: cache.estimatedTokens[row]!,
        isAvailable: busy.isAvailable[row]!,
        prefill: busy.activePrefillTokens[row]!,
        decodeCost: busy.decodeCostBlocks[row]!,
        requests: busy.activeRequests[row]!,
        multiplier: preferredTaintMultiplier?.[row],
      }));
      seen.push({ rows, hasTierMatches: cache.hasTierMatches });
      costs.set(busy.decodeCostBlocks);
    },
  };
  const { filters = [], ...rest } = setUp;
  return { core: corePool({ ...rest, policy: custom({ filters, scorers: [scorer] }) }), seen };
}

const set: WorkerInput[] = [
  { workerId: "18446744073709551615", dpSize: 2, taints: ["a"] },
  { workerId: 5, dpStart: 7, dpSize: 2 },
  { workerId: 2, taints: ["a", "b"] },
  ...Array.from({ length: 9 }, (_, i) => ({ workerId: 100 + i, taints: i % 2 ? ["b"] : [] })),
];
const shared = prompt(3, 12);

/** Caches in every tier, and prompts at work that share blocks with `shared`. */
function busy(core: SelectionCore): void {
  for (const [i, id] of ["2", "100", "101", "102"].entries()) {
    holds(core, id, shared, 3 + i);
    holds(core, id, shared, 6 + i, "host_pinned", 3 + i);
    if (i % 2) holds(core, id, shared, 9 + i - 1, "disk", 6 + i);
    load(core, id, i, 100 * i, 2 * i);
  }
  for (const workerId of ["2", "102", "103"]) core.select({ tokens: prompt(3, 7, 5), pinnedWorker: { workerId } });
  core.select({ tokens: prompt(3, 2), pinnedWorker: { workerId: 103 } });
}

/** What each rank's row must be, asked of other verbs one rank at a time. */
function expected(core: SelectionCore, request: PoolRequest, isTainted: boolean): Row[] {
  const loads = core.loads();
  core.kernel.writeTokens(request.tokens);
  const overlaps = core.contents.overlap(core.kernel.hashPrompt(request.tokens.length, SIZE, 1337n));
  return [...core.ranks].map((rank, row) => {
    const { workerId, dpRank, slot } = rank;
    const held = overlaps.find((one) => one.workerId === workerId && one.dpRank === dpRank);
    const { deviceBlocks: device = 0, hostBlocks: host = 0, diskBlocks: disk = 0 } = held ?? {};
    const { activePrefillTokens: prefill, activeRequests: requests } = loads[row]!;
    // What a rank would decode with this request is what it decodes once it has it.
    const isOver = rank.overloaded;
    if (isOver) core.ranks.setOverloaded(rank, false);
    const { booking } = core.select({ tokens: request.tokens, pinnedWorker: { workerId, dpRank } });
    const decodeCost = core.loads()[row]!.activeDecodeBlocks;
    booking.free();
    if (isOver) core.ranks.setOverloaded(rank, true);
    const preferred = request.routingConstraints?.preferredTaints ?? {};
    const weight = rank.record.taints.reduce((sum, taint) => sum + (preferred[taint] ?? 0), 0);
    const estimatedBlocks = device + 0.75 * host + 0.25 * disk;
    return {
      ...{ slot, workerId, dpRank, device, host, disk, shared: 0, estimatedBlocks },
      ...{ estimatedTokens: Math.floor(estimatedBlocks * SIZE + 0.5), isAvailable: 1, prefill, decodeCost, requests },
      multiplier: isTainted ? Math.exp(-Math.tanh(weight)) : undefined,
    };
  });
}

const close = (rows: Row[]) =>
  rows.map((row) => ({
    ...row,
    multiplier: row.multiplier === undefined ? undefined : expect.closeTo(row.multiplier, 12),
  }));

const preferredTaints = { a: 1, b: -0.5 };
const requests: [string, PoolRequest, (row: Row) => boolean][] = [
  ["all ranks", { tokens: shared }, () => true],
  ["a prompt that nobody has", { tokens: prompt(9, 4) }, () => true],
  ["less than a block", { tokens: shared.slice(0, 5) }, () => true],
  [
    "some workers",
    { tokens: shared, allowedWorkerIds: [2, 5, 103] },
    (row) => ["2", "5", "103"].includes(row.workerId),
  ],
  ["preferred taints", { tokens: shared, routingConstraints: { preferredTaints } }, () => true],
  [
    "preferred and required taints",
    { tokens: shared, routingConstraints: { preferredTaints, requiredTaints: ["b"] } },
    (row) => ["2", "101", "103", "105", "107"].includes(row.workerId),
  ],
  [
    "a pin",
    { tokens: shared, pinnedWorker: { workerId: 5, dpRank: 8 }, routingConstraints: { preferredTaints } },
    (row) => row.dpRank === 8,
  ],
];

describe.each([
  ["in low memory", {}],
  ["above 2 GiB", { from: 2 ** 31 + 4096 }],
])("columns %s", (_, setUp) => {
  it.each(requests)("%s", (_name, request, isCandidate) => {
    const { core, seen } = noting({ ...setUp, workers: set });
    busy(core);
    core.ranks.setOverloaded(core.ranks.get("104", 0)!, true);
    const isTainted = request.routingConstraints?.preferredTaints !== undefined && !request.pinnedWorker;
    const rows = expected(core, request, isTainted).filter((row) => isCandidate(row) && row.workerId !== "104");
    seen.length = 0;
    core.probe(request);
    expect(seen).toEqual([
      { rows: close(rows), hasTierMatches: request.tokens.length > SIZE && request.tokens[0] === shared[0] },
    ]);
    // Rows are by worker id as u64, then rank.
    expect(rows.map((row) => row.workerId)).toEqual(
      [...rows].sort((a, b) => (BigInt(a.workerId) < BigInt(b.workerId) ? -1 : 1)).map((row) => row.workerId),
    );
  });

  it("after filters only those of the survivors, in their order", () => {
    let isOn = false;
    const wanted = new Set(["5", "101", "18446744073709551615"]);
    const keep: WorkerFilter["keep"] = (_ctx, view, row) => !isOn || wanted.has(view.workerId(row));
    const { core, seen } = noting({
      ...setUp,
      workers: set,
      filters: [{ requiredInputs: WorkerInputs.LOAD, keep }],
    });
    busy(core);
    const rows = expected(core, { tokens: shared }, false).filter((row) => wanted.has(row.workerId));
    expect(rows).toHaveLength(5);
    isOn = true;
    seen.length = 0;
    core.probe({ tokens: shared });
    expect(seen).toEqual([{ rows, hasTierMatches: true }]);
  });

  it("decides for a survivor as if it were alone", () => {
    const filters: WorkerFilter[] = [{ keep: (_ctx, view, row) => view.workerId(row) === "102" }];
    const { core } = noting({ ...setUp, workers: set, filters });
    holds(core, "102", shared, 5);
    const { worker, overlap, effectivePrefillTokens, booking } = core.select({ tokens: shared });
    expect([worker.workerId, overlap.deviceBlocks, effectivePrefillTokens]).toEqual(["102", 5, 7 * SIZE]);
    expect(core.loads().find((row) => row.workerId === "102")).toMatchObject({ activeDecodeBlocks: 12 });
    booking.free();
    expect(core.loads().every((row) => row.activeDecodeBlocks + row.activeRequests === 0)).toBe(true);
  });
});

describe("16,384 ranks", () => {
  const many = 16_384;
  const { LOAD } = WorkerInputs;
  const last = perRow(LOAD, (_ctx, rows, row) => many - row + rows.load!.activeRequests[row]!);
  const set = { workers: [{ workerId: 1, dpSize: many }], maxRanks: many, budgetBytes: 2 ** 28 };

  it("are all candidates, and the last one is taken", () => {
    const core = corePool({ ...set, policy: custom({ scorers: [last] }) });
    expect(core.select({ tokens: shared })).toMatchObject({ worker: { dpRank: many - 1 }, reason: "cost" });
    expect(core.select({ tokens: shared })).toMatchObject({ worker: { dpRank: many - 1 }, reason: "tie" });
  });

  it("as survivors of a filter, and by a pin", () => {
    const filter: WorkerFilter = { keep: (_ctx, rows, row) => rows.dpRank[row]! % 1000 === 7 };
    const core = corePool({ ...set, policy: custom({ filters: [filter], scorers: [last] }) });
    expect(core.select({ tokens: shared }).worker.dpRank).toBe(16_007);
    const pinned = core.select({ tokens: shared, pinnedWorker: { workerId: 1, dpRank: 16_007 } });
    expect([pinned.worker.dpRank, pinned.reason]).toEqual([16_007, "pinned"]);
  });
});

it("candidates grow with the pool, and keep their place when ranks leave", () => {
  const lengths: number[] = [];
  const scorer = perRow(
    WorkerInputs.LOAD,
    (_ctx, rows, row) => rows.load!.activeRequests[row]! * 1000 + rows.slot[row]!,
  );
  const core = corePool({
    maxRanks: 1000,
    workers: workers(10),
    policy: custom({
      scorers: [{ ...scorer, score: (ctx, rows, out) => noted(lengths, rows.length, scorer.score(ctx, rows, out)) }],
    }),
  });
  core.select({ tokens: shared });
  for (const worker of workers(300).slice(10))
    core.addRank({ ...core.ranks.at(0).record, workerId: String(worker.workerId) }, 0);
  core.select({ tokens: shared });
  for (let i = 1; i <= 250; i++) core.removeRank(String(i), 0);
  expect(core.select({ tokens: shared }).worker.workerId).toBe("251");
  expect(lengths).toEqual([10, 300, 50]);
});

describe("views follow", () => {
  const one = { tokens: shared, allowedWorkerIds: ["2"] };

  /** Selects for worker 2 alone, and answers how many requests its scorer saw there. */
  function watched(): { core: SelectionCore; requests: () => number } {
    const seen: number[] = [];
    const { CACHE, LOAD } = WorkerInputs;
    const scorer = perRow(CACHE | LOAD, (_ctx, rows, row) => noted(seen, rows.load!.activeRequests[row], 0));
    const core = corePool({ workers: workers(3), maxRanks: 1000, policy: custom({ scorers: [scorer] }) });
    return {
      core,
      requests() {
        core.select(one);
        return seen.at(-1)!;
      },
    };
  }

  it("candidates that move, also when they are as many as before", () => {
    const { core, requests } = watched();
    holds(core, "1", shared, 1); // a store makes memory grow ahead
    expect([requests(), requests()]).toEqual([0, 1]);
    const { record } = core.ranks.at(0);
    const { buffer } = core.kernel.exports.memory;
    const before = core.kernel.answer[Answer.region];
    for (let id = 100; id < 170; id++) core.addRank({ ...record, workerId: String(id) }, 0);
    expect([requests(), requests()]).toEqual([2, 3]);
    expect(core.kernel.answer[Answer.region]).not.toBe(before);
    expect(core.kernel.exports.memory.buffer === buffer).toBe(true);
  });

  it("memory that grows", () => {
    const { core, requests } = watched();
    expect([requests(), requests()]).toEqual([0, 1]);
    const { memory } = core.kernel.exports;
    const before = memory.buffer;
    for (let i = 0; memory.buffer === before; i++) holds(core, "1", prompt(1000 + i, 400), 400);
    expect([requests(), requests()]).toEqual([2, 3]);
  });

  it("preferred taints that come and go", () => {
    const seen: unknown[] = [];
    const scorer = perRow(WorkerInputs.PREFERRED_TAINT, (_ctx, rows) => {
      return noted(seen, rows.preferredTaintMultiplier !== undefined, 0);
    });
    const core = corePool({ workers: workers(1), policy: custom({ scorers: [scorer] }) });
    const tainted = { tokens: shared, routingConstraints: { preferredTaints } };
    for (const request of [one, tainted, tainted]) core.select({ ...request, allowedWorkerIds: ["1"] });
    seen.length = 0;
    for (const request of [one, tainted, one, tainted]) core.select({ ...request, allowedWorkerIds: ["1"] });
    expect(seen).toEqual([false, true, false, true]);
  });
});

it("a pool without room for candidates says so, and stays usable", () => {
  const core = corePool({ workers: workers(8), budgetBytes: 2 ** 20, policy: custom({}) });
  const taken: number[] = [];
  for (let bytes = 1 << 18; bytes >= 64; bytes >>= 1) {
    const { take } = core.kernel.exports as unknown as { take(bytes: number): number };
    while (take(bytes) !== 0) taken.push(bytes);
  }
  expect(() => core.select({ tokens: shared.slice(0, 16) })).toThrow(
    expect.objectContaining({ code: "memory_budget" }),
  );
  expect(core.bookings).toEqual([]);
  expect(core.loads()).toHaveLength(8);
});
