// Filters → scorers → picker, and what each of them sees (spec: plugins.md §3).
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FrozenMap } from "../../src/core/frozen-map.js";
import type { SelectionContext, WorkerPicker, WorkerScorer } from "../../src/plugins/worker-selection/components.js";
import { WorkerInputs } from "../../src/plugins/worker-selection/components.js";
import { guardViews } from "../../src/plugins/worker-selection/guarded-views.js";
import { perRow } from "../../src/plugins/worker-selection/per-row.js";
import type { PoolRequest } from "../../src/scheduling/pool.js";
import { coded, costs, holds, nextDraw, noted, policyPool as poolOf, prompt, SIZE, workers } from "./pool.js";

const { CACHE, LOAD, PREFERRED_TAINT, OCCUPANCY, LATENCY, NETWORK, NONE } = WorkerInputs;
const tokens = prompt(1, 4);

describe("the pipeline", () => {
  it("runs filters row by row, then scorers in order over the survivors, then the picker", () => {
    const calls: string[] = [];
    const id = (rows: { workerId(row: number): string }, row: number) => rows.workerId(row);
    const all = (rows: { length: number; workerId(row: number): string }) =>
      Array.from({ length: rows.length }, (_, row) => rows.workerId(row)).join();
    const core = poolOf({
      filters: [
        { keep: (_, rows, row) => noted(calls, `a${id(rows, row)}`, id(rows, row) !== "2") },
        { keep: (_, rows, row) => noted(calls, `b${id(rows, row)}`, id(rows, row) !== "3") },
      ],
      scorers: [
        { score: (_, rows, out) => noted(calls, `s0:${all(rows)}`, out.set([1, 2])) },
        { score: (_, rows, out) => noted(calls, `s1:${all(rows)}`, out.set([10, 5])) },
      ],
      picker: { pick: (_, rows) => noted(calls, `p:${all(rows)}:${rows.costs.join()}`, 1) },
    });
    const selection = core.select({ tokens });
    expect(selection.worker).toEqual({ workerId: "4", dpRank: 0 });
    expect(calls).toEqual(["a1", "b1", "a2", "a3", "b3", "a4", "b4", "s0:1,4", "s1:1,4", "p:1,4:11,7"]);
    expect(core.loads().map((row) => row.activeRequests)).toEqual([0, 0, 0, 1]);
  });

  it("takes the lowest cost where no picker is given, ties by one draw", () => {
    const core = poolOf({ scorers: [costs(2, 1, 1, 3)] });
    const twin = poolOf({});
    for (let i = 0; i < 50; i++) {
      const index = Math.floor(nextDraw(twin) * 2);
      const selection = core.select({ tokens });
      expect(selection).toMatchObject({ worker: { workerId: ["2", "3"][index] }, tieDraw: index, reason: "tie" });
      selection.booking.free();
    }
  });

  it("gives every row 0 without scorers", () => {
    const seen: number[][] = [];
    const core = poolOf({ picker: { pick: (_, rows) => noted(seen, [...rows.costs], 2) } });
    expect(core.select({ tokens }).worker.workerId).toBe("3");
    expect(seen).toEqual([[0, 0, 0, 0]]);
  });

  it("adds in the order of the scorers, as the numbers round", () => {
    const seen: number[][] = [];
    const core = poolOf(
      {
        scorers: [costs(0.1), costs(0.2), costs(0.3)],
        picker: { pick: (_, rows) => noted(seen, [...rows.costs], 0) },
      },
      { workers: workers(1) },
    );
    core.select({ tokens });
    expect(seen).toEqual([[0.1 + 0.2 + 0.3]]);
  });

  it("hands each scorer NaN in every slot", () => {
    const seen: number[][] = [];
    const scorer: WorkerScorer = { score: (_, _rows, out) => noted(seen, [...out], out.fill(1)) };
    poolOf({ scorers: [scorer, scorer] }).select({ tokens });
    expect(seen).toEqual([Array(4).fill(Number.NaN), Array(4).fill(Number.NaN)]);
  });

  it("tells the request", () => {
    const seen: SelectionContext[] = [];
    const core = poolOf({ picker: { pick: (ctx) => noted(seen, ctx, 0) } });
    const sessionContext = { sessionId: "s", sessionFinal: false };
    const attributes = new FrozenMap([["tenant", "a"]]);
    const none = new FrozenMap([]);
    core.select({ tokens: prompt(1, 2, 1) });
    core.select({
      tokens,
      sessionContext,
      attributes,
      affinityTarget: { workerId: 3 },
      expectedOutputTokens: 7,
      priorityJump: -1.5,
      strictPriority: 2,
      configOverride: { routerTemperature: 0.5, trackPrefillTokens: false },
    });
    core.select({ tokens, pinnedWorker: { workerId: "2" }, affinityTarget: { workerId: "1", dpRank: 0 } });
    const functions = { random: expect.any(Function), randomBelow: expect.any(Function) };
    const plain = { blockSize: SIZE, tracksPrefillTokens: true, priorityJump: 0, strictPriority: 0 };
    expect(seen).toEqual([
      { ...plain, promptTokens: 33, requestBlocks: 3, attributes: none, ...functions },
      {
        ...{ promptTokens: 64, requestBlocks: 4, blockSize: SIZE, tracksPrefillTokens: false },
        ...{ sessionContext, attributes, affinityTarget: { workerId: "3" }, expectedOutputTokens: 7 },
        ...{ priorityJump: -1.5, strictPriority: 2, routerTemperatureOverride: 0.5, ...functions },
      },
      {
        ...{ ...plain, promptTokens: 64, requestBlocks: 4, attributes: none, ...functions },
        ...{ affinityTarget: { workerId: "1", dpRank: 0 }, pinnedWorker: { workerId: "2", dpRank: 0 } },
      },
    ]);
    expect(Object.keys(seen[0]!)).not.toContain("pinnedWorker");
  });

  it("draws from the pool's generator", () => {
    const seen: number[] = [];
    const core = poolOf({ picker: { pick: (ctx) => noted(seen, [ctx.random(), ctx.randomBelow(1000)], 0) } });
    const twin = poolOf({});
    core.select({ tokens });
    expect(seen).toEqual([[nextDraw(twin), Math.floor(nextDraw(twin) * 1000)]]);
    expect(nextDraw(core)).toBe(nextDraw(twin));
  });
});

it("a context that is kept draws nothing outside of a call", () => {
  const contexts: SelectionContext[] = [];
  const core = poolOf({ picker: { pick: (ctx) => noted(contexts, ctx, 0) } });
  const twin = poolOf({});
  core.select({ tokens });
  const { random, randomBelow } = contexts[0]!;
  expect(() => random()).toThrow(coded("policy_failed"));
  expect(() => randomBelow(3)).toThrow(coded("policy_failed"));
  expect(nextDraw(core)).toBe(nextDraw(twin));
});

describe("inputs", () => {
  const groups = ["cache", "load", "preferredTaintMultiplier", "latency", "network"] as const;
  const request: PoolRequest = { tokens, routingConstraints: { preferredTaints: { a: 1 } } };

  it.each([
    ["nothing", undefined, []],
    ["NONE", NONE, []],
    ["CACHE", CACHE, ["cache"]],
    ["LOAD", LOAD, ["load"]],
    ["PREFERRED_TAINT", PREFERRED_TAINT, ["preferredTaintMultiplier"]],
    ["OCCUPANCY", OCCUPANCY, []],
    ["LATENCY", LATENCY, ["latency"]],
    ["NETWORK", NETWORK, ["network"]],
    ["two", CACHE | LOAD, ["cache", "load"]],
  ] as const)("%s: a component sees only what it asked for, whatever others did", (_, requiredInputs, visible) => {
    const seen: string[][] = [];
    const look = <T>(rows: object, answer: T): T => {
      const visibleHere = groups.filter((group) => (rows as Record<string, unknown>)[group] !== undefined);
      return noted(seen, visibleHere, answer);
    };
    const everything = CACHE | LOAD | PREFERRED_TAINT | LATENCY | NETWORK;
    const all = { requiredInputs: everything };
    const given = requiredInputs === undefined ? {} : { requiredInputs };
    const core = poolOf({
      filters: [
        { ...all, keep: () => true },
        { ...given, keep: (_ctx, rows) => look(rows, true) },
      ],
      scorers: [
        perRow(everything, () => 0),
        { ...given, score: (_ctx, rows, out) => look(rows, void out.fill(0)) },
        perRow(everything, () => 0),
      ],
      picker: { ...given, pick: (_ctx, rows) => look(rows, 0) },
    });
    core.select(request);
    expect(seen).toEqual(Array(6).fill(visible));
  });

  it("reads what a component requires once", () => {
    let reads = 0;
    const scorer = {
      get requiredInputs() {
        return reads++ === 0 ? LOAD : CACHE;
      },
      score(_: unknown, rows: { load?: object; cache?: object }, out: Float64Array) {
        out.fill(rows.load && !rows.cache ? 0 : Number.NaN);
      },
    };
    const core = poolOf({ scorers: [scorer] });
    for (let i = 0; i < 3; i++) core.select({ tokens });
    expect([reads, core.usesIndex]).toEqual([1, false]);
  });

  it("latency and network are unknown until a source feeds them", () => {
    const seen: unknown[] = [];
    const core = poolOf({
      scorers: [
        {
          requiredInputs: LATENCY | NETWORK,
          score(_, { latency, network }, out) {
            const { ttftMsMean, itlMsMean, errorRate, samples } = latency!;
            seen.push([...ttftMsMean, ...itlMsMean, ...errorRate, ...samples, ...network!.rttMs]);
            seen.push([...network!.sameRegion]);
            out.fill(0);
          },
        },
      ],
    });
    core.select({ tokens });
    expect(seen).toEqual([Array(20).fill(Number.NaN), [0, 0, 0, 0]]);
  });

  it("no multiplier without preferred taints, or with a pin", () => {
    const seen: unknown[] = [];
    const multiplier = perRow(PREFERRED_TAINT, (_, rows, row) => {
      seen.push(rows.preferredTaintMultiplier?.[row]);
      return 0;
    });
    const core = poolOf({ scorers: [multiplier] }, { workers: [{ workerId: 1, taints: ["a"] }, { workerId: 2 }] });
    core.select({ tokens });
    core.select(request);
    core.select({ ...request, pinnedWorker: { workerId: 1 } });
    core.select({ ...request, routingConstraints: { requiredTaints: ["a"] } });
    expect(seen).toEqual([undefined, undefined, expect.closeTo(0.46692, 5), 1, undefined, undefined]);
  });

  it("tells labels and ids by row", () => {
    const seen: unknown[] = [];
    const look: WorkerPicker = {
      pick(_, rows) {
        for (let row = 0; row < rows.length; row++) {
          seen.push([rows.workerId(row), rows.dpRank[row], rows.label(row, "zone"), rows.label(row, "constructor")]);
        }
        return 0;
      },
    };
    const ids = [
      { workerId: "18446744073709551615", labels: { zone: "b" } },
      { workerId: 7, dpStart: 3, dpSize: 2, labels: { zone: "a" } },
    ];
    poolOf({ picker: look }, { workers: ids }).select({ tokens });
    expect(seen).toEqual([
      ["7", 3, "a", undefined],
      ["7", 4, "a", undefined],
      ["18446744073709551615", 0, "b", undefined],
    ]);
  });

  it("without CACHE the pool keeps no index: events are refused and counted, loads stand alone", () => {
    const core = poolOf({ scorers: [perRow(LOAD, (_, rows, row) => rows.load!.activePrefillTokens[row]!)] });
    expect(core.usesIndex).toBe(false);
    expect(() => holds(core, "1", tokens, 4)).toThrow("no_index");
    expect(core.contents.refused).toBe(1);
    const selection = core.select({ tokens, pinnedWorker: { workerId: 1 } });
    expect(selection).toMatchObject({ effectivePrefillTokens: 64, evidence: "none", overlap: { deviceBlocks: 0 } });
    expect(core.loads()[0]).toMatchObject({ activePrefillTokens: 64, activeDecodeBlocks: 4, activeRequests: 1 });
  });

  it.each([
    ["a filter", { filters: [{ requiredInputs: CACHE, keep: () => true }] }],
    ["a scorer", { scorers: [costs(0, 0, 0, 0), perRow(CACHE, () => 0)] }],
    ["the picker", { picker: { requiredInputs: CACHE, pick: () => 0 } }],
  ])("CACHE of %s makes the pool keep an index", (_, options) => {
    expect(poolOf(options).usesIndex).toBe(true);
  });

  it.each([
    ["an unknown bit", { scorers: [{ requiredInputs: 8, score() {} }] }],
    ["a large number", { scorers: [{ requiredInputs: 256, score() {} }] }],
    [
      "2³² and more, of which only the lowest bits are known",
      { scorers: [{ requiredInputs: 2 ** 32 + 1, score() {} }] },
    ],
    ["2⁴⁰", { filters: [{ requiredInputs: 2 ** 40, keep: () => true }] }],
    ["2⁵³", { picker: { requiredInputs: 2 ** 53, pick: () => 0 } }],
    ["what cannot be read", { scorers: [new Proxy({}, { get: () => expect.fail("do not look") }) as never] }],
    ["a fraction", { scorers: [{ requiredInputs: 1.5, score() {} }] }],
    ["a negative number", { filters: [{ requiredInputs: -1, keep: () => true }] }],
    ["a list", { scorers: [{ requiredInputs: ["CACHE"] as never, score() {} }] }],
    ["a filter without keep()", { filters: [{} as never] }],
    ["a scorer that is a function", { scorers: [(() => 0) as never] }],
    ["a scorer that is null", { scorers: [null as never] }],
    ["a picker without pick()", { picker: {} as never }],
  ])("refuses %s when the pool is built, and closes the policy", (_, options) => {
    let closed = 0;
    expect(() => poolOf({ ...options, close: () => void closed++ })).toThrow(coded("invalid_plugin"));
    expect(closed).toBe(1);
  });
});

describe("views", () => {
  describe("in guarded builds", () => {
    beforeAll(() => guardViews(true));
    afterAll(() => guardViews(false));

    it("throw after their call, whatever is done with them and their columns", () => {
      const kept: (() => unknown)[] = [];
      const columns: (Float64Array | Uint32Array)[] = [];
      const keep = (view: object) =>
        kept.push(
          () => Reflect.get(view, "length"),
          () => "cache" in view,
          () => Object.keys(view),
          () => Object.getOwnPropertyDescriptor(view, "slot"),
          () => Object.getPrototypeOf(view),
          () => Object.isFrozen(view),
          () => Reflect.set(view, "slot", 1),
          () => Reflect.defineProperty(view, "x", { value: 1 }),
          () => Reflect.deleteProperty(view, "slot"),
          () => ({ ...view }),
        );
      const core = poolOf({
        filters: [{ requiredInputs: LOAD, keep: (_, rows) => noted(columns, rows.load!.activeRequests, !!keep(rows)) }],
        scorers: [
          {
            requiredInputs: CACHE,
            score(_, rows, out) {
              const { workerId, label } = rows;
              kept.push(
                () => workerId(0),
                () => label(0, "zone"),
              );
              for (const view of [rows, rows.cache!]) keep(view);
              columns.push(rows.slot, out, rows.cache!.deviceOverlapBlocks);
              out.fill(1);
            },
          },
        ],
        picker: { pick: (_, rows) => noted(columns, rows.costs, keep(rows) * 0) },
      });
      expect(core.select({ tokens }).worker.workerId).toBe("1");
      expect(kept.length).toBe(4 * 10 + 2 + 2 * 10 + 10);
      for (const use of kept) expect(use).toThrow(coded("policy_failed"));
      expect(columns).toHaveLength(8);
      for (const column of columns) {
        const uses = [
          () => column[0],
          () => column.length,
          () => column.fill(0),
          () => [...column],
          () => 0 in column,
          () => Object.keys(column),
          () => Object.getOwnPropertyDescriptor(column, 0),
          () => Reflect.set(column, 0, 1),
          () => Reflect.defineProperty(column, 0, { value: 1 }),
          () => Reflect.deleteProperty(column, 0),
        ];
        for (const use of uses) expect(use).toThrow(coded("policy_failed"));
      }
    });

    it("are what they are otherwise while the call lasts", () => {
      const core = poolOf({
        filters: [{ requiredInputs: LOAD, keep: (_, rows, row) => rows.load!.isAvailable[row] === 1 }],
        scorers: [
          {
            requiredInputs: CACHE | LATENCY,
            score(_, rows, out) {
              expect(rows.slot).toBe(rows.slot);
              expect(rows.cache).toBe(rows.cache);
              expect(rows.workerId).toBe(rows.workerId);
              for (const column of [out, rows.slot, rows.cache!.diskOverlapBlocks]) {
                expect(column).toBeInstanceOf(column === rows.slot ? Uint32Array : Float64Array);
                expect(column.length).toBe(4);
                const copy = new Float64Array(4);
                copy.set(column);
                expect([...column]).toEqual([...copy]);
                expect(Array.from(column.map((value) => value + 1))).toEqual(Array.from(copy, (value) => value + 1));
              }
              expect(rows.load).toBeUndefined();
              expect(rows.cache!.hasTierMatches).toBe(false);
              expect([rows.length, rows.workerId(1), [...rows.slot].length]).toEqual([4, "2", 4]);
              out.fill(1);
              out.set([3, 0.5], 1);
              out.subarray(3).fill(2);
            },
          },
        ],
        picker: { pick: (_, rows) => rows.costs.indexOf(Math.min(...rows.costs)) },
      });
      expect(core.select({ tokens }).worker.workerId).toBe("3");
      expect(core.probe({ tokens }).candidates.map(({ cost }) => cost)).toEqual([1, 3, 0.5, 2]);
    });

    it("a cost of a kept column is refused, and one of a column that was given away is none", () => {
      const kept: Float64Array[] = [];
      const lazy = poolOf({
        scorers: [
          {
            requiredInputs: LOAD,
            score(_, rows, out) {
              kept.push(rows.load!.activeRequests);
              for (let row = 0; row < rows.length; row++) out[row] = kept[0]![row]!;
            },
          },
        ],
      });
      lazy.select({ tokens });
      expect(() => lazy.select({ tokens })).toThrow(coded("policy_failed"));
      const giving = poolOf({
        scorers: [
          { score: (_, _rows, out) => void structuredClone(out.fill(1), { transfer: [out.buffer as ArrayBuffer] }) },
        ],
      });
      expect(() => giving.select({ tokens })).toThrow(coded("non_finite_cost"));
    });
  });

  it("a component that writes over its columns changes what it sees, and nothing of the pool", () => {
    const core = poolOf({
      scorers: [
        {
          requiredInputs: LOAD | CACHE,
          score(_, { slot, dpRank, load, cache }, out) {
            for (const column of [slot, dpRank, load!.activeRequests, load!.isAvailable, cache!.estimatedBlocks]) {
              column.fill(77);
            }
            out.set([4, 3, 2, 1]);
          },
        },
      ],
    });
    const names = ["1", "2", "3", "4"];
    expect(core.probe({ tokens }).candidates.map((candidate) => candidate.workerId)).toEqual(names);
    expect(core.select({ tokens }).worker).toEqual({ workerId: "4", dpRank: 0 });
    expect(core.loads().map((row) => row.activeRequests)).toEqual([0, 0, 0, 1]);
  });

  it("a scorer that keeps its view and writes later changes nothing", () => {
    const kept: Float64Array[] = [];
    const core = poolOf({
      scorers: [{ score: (_, _rows, out) => noted(kept, out, out.set([3, 1, 2, 3])) }, costs(0, 0, 0, 0)],
      picker: {
        pick(_, { costs: totals }) {
          kept[0]![0] = -100;
          expect([...totals]).toEqual([3, 1, 2, 3]);
          return totals.indexOf(1);
        },
      },
    });
    for (let i = 0; i < 3; i++) {
      expect(core.select({ tokens }).worker.workerId).toBe("2");
      for (const view of kept) view[2] = Number.NaN;
    }
  });
});
