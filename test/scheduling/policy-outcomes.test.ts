// Outcomes, pins, affinity and reasons of policies made of components (spec: plugins.md §3.1, §3.6; CASES C40, C43).
import { describe, expect, it } from "vitest";
import { WorkerInputs, type WorkerPicker } from "../../src/plugins/worker-selection/components.js";
import { perRow } from "../../src/plugins/worker-selection/per-row.js";
import { coded, costs, holds, load, nextDraw, noted, picks, policyPool as poolOf, prompt } from "./pool.js";

const { CACHE, LOAD, NONE } = WorkerInputs;
const tokens = prompt(1, 4);

describe("outcomes", () => {
  const filters = [{ keep: () => false }];
  const untouched = { filters, scorers: [{ score: () => expect.unreachable() }], picker: picks(0) };

  it("all filtered: scorers and picker are not called", () => {
    const core = poolOf(untouched);
    expect(() => core.select({ tokens })).toThrow(coded("all_eligible_workers_filtered", { status: 503 }));
    expect(core.probe({ tokens })).toEqual({
      outcome: "all_eligible_workers_filtered",
      selected: null,
      candidates: [],
      excluded: ["1", "2", "3", "4"].map((workerId) => ({ workerId, dpRank: 0, reason: "filtered" })),
    });
  });

  it.each([
    ["overloaded", "all_eligible_workers_overloaded", { overload: true }, {}],
    ["no worker at all", "no_endpoints", { none: true }, {}],
    ["none allowed", "no_endpoints", {}, { allowedWorkerIds: ["9"] }],
    ["none with the taint", "no_endpoints", {}, { routingConstraints: { requiredTaints: ["x"] } }],
    [
      "a pin that is not allowed",
      "pinned_worker_not_allowed",
      {},
      { pinnedWorker: { workerId: 1 }, allowedWorkerIds: [2] },
    ],
    ["a pin that is overloaded", "pinned_worker_overloaded", { overload: true }, { pinnedWorker: { workerId: 1 } }],
    ["a pin that is not there", "no_endpoints", {}, { pinnedWorker: { workerId: 9 } }],
    ["a pinned rank out of range", "no_endpoints", {}, { pinnedWorker: { workerId: 1, dpRank: 1 } }],
    [
      "a pin without the taint",
      "no_endpoints",
      {},
      { pinnedWorker: { workerId: 1 }, routingConstraints: { requiredTaints: ["x"] } },
    ],
    ["a pin that is filtered", "all_eligible_workers_filtered", {}, { pinnedWorker: { workerId: 1 } }],
  ] as const)("%s → %s", (_, code, how: { overload?: boolean; none?: boolean }, request) => {
    const core = poolOf(untouched, how.none ? { workers: [] } : {});
    if (how.overload) for (const rank of core.ranks) core.ranks.setOverloaded(rank, true);
    const draw = nextDraw(poolOf({}, { seed: 1n }));
    expect(() => core.select({ tokens, ...(request as object) })).toThrow(coded(code));
    expect(core.probe({ tokens, ...(request as object) })).toMatchObject({ outcome: code, selected: null });
    expect(nextDraw(core)).toBe(draw);
  });
});

describe("pins and affinity", () => {
  it("a pin leaves its pair alone, through filters, scorers and picker", () => {
    const seen: unknown[] = [];
    const core = poolOf({
      filters: [{ keep: (_, rows, row) => noted(seen, rows.workerId(row), true) }],
      scorers: [{ score: (_, rows, out) => noted(seen, rows.length, out.fill(5)) }],
    });
    const selection = core.select({ tokens, pinnedWorker: { workerId: 3 }, explain: true });
    expect(selection).toMatchObject({
      worker: { workerId: "3" },
      reason: "pinned",
      candidates: [{ workerId: "3", cost: 5, terms: { scorer_0: 5 } }],
    });
    expect(seen).toEqual(["3", 1]);
    expect(core.probe({ tokens, pinnedWorker: { workerId: 3 } }).excluded).toEqual(
      ["1", "2", "4"].map((workerId) => ({ workerId, dpRank: 0, reason: "not_pinned" })),
    );
  });

  const ranked = [{ workerId: 1, dpSize: 2 }, { workerId: 2 }];
  const see = () => {
    const seen: unknown[] = [];
    const picker: WorkerPicker = {
      pick(ctx, rows) {
        const names = Array.from({ length: rows.length }, (_, i) => `${rows.workerId(i)}/${rows.dpRank[i]}`).join();
        seen.push([names, ctx.pinnedWorker, ctx.affinityTarget]);
        return 0;
      },
    };
    return { seen, picker };
  };
  const one = { workerId: "1", dpRank: 1 };

  it.each([
    [
      "advisory: all candidates, and the target",
      false,
      { workerId: 1, dpRank: 1 },
      {},
      "1/0,1/1,2/0",
      undefined,
      "cost",
    ],
    ["exclusive: the rank alone, as if pinned", true, { workerId: 1, dpRank: 1 }, {}, "1/1", one, "affinity"],
    ["exclusive to a worker: its ranks", true, { workerId: 1 }, {}, "1/0,1/1", undefined, "affinity"],
    ["exclusive to a worker of one rank", true, { workerId: 2 }, {}, "2/0", { workerId: "2", dpRank: 0 }, "affinity"],
    ["exclusive, not there", true, { workerId: 9 }, {}, "1/0,1/1,2/0", undefined, "cost"],
    ["exclusive, rank not there", true, { workerId: 2, dpRank: 5 }, {}, "1/0,1/1,2/0", undefined, "cost"],
    ["exclusive, not allowed", true, { workerId: 1 }, { allowedWorkerIds: [2] }, "2/0", undefined, "only_candidate"],
    [
      "exclusive, but pinned elsewhere",
      true,
      { workerId: 1 },
      { pinnedWorker: { workerId: 2 } },
      "2/0",
      { workerId: "2", dpRank: 0 },
      "pinned",
    ],
  ] as const)("%s", (_, exclusiveAffinity, affinityTarget, request, names, pinned, reason) => {
    const { seen, picker } = see();
    const scorers = [perRow(NONE, (_ctx, _rows, row) => row)];
    const core = poolOf({ exclusiveAffinity, picker, scorers }, { workers: ranked });
    const selection = core.select({ tokens, affinityTarget, ...(request as object) });
    const target = { ...affinityTarget, workerId: String(affinityTarget.workerId) };
    expect([seen, selection.reason]).toEqual([[[names, pinned, target]], reason]);
  });

  it("an overloaded target binds nobody", () => {
    const { seen, picker } = see();
    const core = poolOf({ exclusiveAffinity: true, picker }, { workers: ranked });
    core.ranks.setOverloaded(core.ranks.get("1", 1)!, true);
    core.select({ tokens, affinityTarget: { workerId: 1, dpRank: 1 } });
    core.select({ tokens, affinityTarget: { workerId: 1 } });
    expect(seen.map((row) => (row as unknown[])[0])).toEqual(["1/0,2/0", "1/0"]);
  });

  it.each([
    [{ workerId: "x" }, "affinityTarget.workerId"],
    [{ workerId: 1, dpRank: -1 }, "affinityTarget.dpRank"],
  ])("refuses %j", (affinityTarget, path) => {
    expect(() => poolOf({}).select({ tokens, affinityTarget })).toThrow(coded("invalid_request", { path }));
  });
});

describe("reasons", () => {
  const set = (...values: number[]) => ({ scorers: [costs(...values)] });
  it.each([
    ["cost", set(3, 1, 2, 2), "cost", undefined],
    ["tie", set(3, 1, 1, 2), "tie", expect.any(Number)],
    ["sampled: not the lowest", { ...set(3, 1, 2, 2), picker: picks(0) }, "sampled", undefined],
    ["one of several lowest, by a picker of its own", { ...set(1, 2, 1, 2), picker: picks(2) }, "tie", 1],
    ["C43 no_signal: every scorer is neutral", set(7, 7, 7, 7), "no_signal", expect.any(Number)],
    ["C43 no_signal: no scorer at all", {}, "no_signal", expect.any(Number)],
  ] as const)("%s", (_, options, reason, tieDraw) => {
    expect(poolOf(options).select({ tokens })).toMatchObject({ reason, ...(tieDraw === undefined ? {} : { tieDraw }) });
  });

  it("one candidate left by the filters", () => {
    const core = poolOf({ filters: [{ keep: (_, _rows, row) => row === 2 }], ...set(1) });
    expect(core.select({ tokens })).toMatchObject({ reason: "only_candidate", worker: { workerId: "3" } });
  });

  it("C43: a difference in load, or in overlap, is a signal even if no scorer uses it", () => {
    const loaded = poolOf({});
    load(loaded, "1", 1);
    expect(loaded.select({ tokens }).reason).toBe("tie");
    const warm = poolOf({ picker: { requiredInputs: CACHE, pick: () => 0 } });
    holds(warm, "2", tokens, 1);
    expect(warm.select({ tokens }).reason).toBe("tie");
  });

  it("C43: differences among ranks that were filtered out are none", () => {
    const core = poolOf({ filters: [{ keep: (_, rows, row) => rows.workerId(row) !== "1" }] });
    load(core, "1", 1);
    expect(core.select({ tokens }).reason).toBe("no_signal");
  });
});

describe("C40: the order of workers in the input does not matter", () => {
  it("decides alike for every order", () => {
    const ids = ["1", "2", "3", "18446744073709551615", "10"];
    const orders = [ids, [...ids].reverse(), ["3", "10", "1", "18446744073709551615", "2"]];
    const options = {
      filters: [
        { keep: (_: unknown, rows: { workerId(row: number): string }, row: number) => rows.workerId(row) !== "2" },
      ],
      scorers: [
        perRow(
          LOAD | CACHE,
          (_, { load, cache }, row) => load!.activeRequests[row]! - cache!.deviceOverlapBlocks[row]!,
        ),
      ],
    };
    const decisions = orders.map((order) => {
      const core = poolOf(options, { workers: order.map((workerId) => ({ workerId })) });
      holds(core, "10", prompt(3, 4), 2);
      return Array.from({ length: 40 }, (_, i) => core.select({ tokens: prompt(i % 5, 4) }).worker.workerId);
    });
    expect(decisions[1]).toEqual(decisions[0]);
    expect(decisions[2]).toEqual(decisions[0]);
    expect(new Set(decisions[0]).size).toBe(4);
  });
});

describe("probe and explain", () => {
  it("probe runs the components, books nothing and leaves the generator unmoved", () => {
    const calls: unknown[] = [];
    const core = poolOf({
      scorers: [costs(1, 2, 3, 4), costs(0.5, 0, 0, 0)],
      picker: { pick: (ctx) => noted(calls, ctx, ctx.randomBelow(4)) },
    });
    const first = core.probe({ tokens });
    expect(core.probe({ tokens })).toEqual(first);
    expect(first).toEqual({
      outcome: "selected",
      selected: { workerId: expect.any(String), dpRank: 0 },
      candidates: [
        { workerId: "1", dpRank: 0, cost: 1.5, terms: { scorer_0: 1, scorer_1: 0.5 } },
        { workerId: "2", dpRank: 0, cost: 2, terms: { scorer_0: 2, scorer_1: 0 } },
        { workerId: "3", dpRank: 0, cost: 3, terms: { scorer_0: 3, scorer_1: 0 } },
        { workerId: "4", dpRank: 0, cost: 4, terms: { scorer_0: 4, scorer_1: 0 } },
      ],
      excluded: [],
    });
    expect([calls.length, core.bookings.length, core.decisions]).toEqual([2, 0, 0]);
    expect(core.select({ tokens, explain: true })).toMatchObject({
      worker: first.selected,
      candidates: first.candidates,
    });
  });

  it("names what a filter dropped", () => {
    const core = poolOf({ filters: [{ keep: (_, _rows, row) => row !== 1 }] });
    const probe = core.probe({ tokens, allowedWorkerIds: [1, 2, 3] });
    expect(probe.candidates).toEqual(["1", "3"].map((workerId) => ({ workerId, dpRank: 0, terms: {} })));
    expect(probe.excluded).toEqual([
      { workerId: "2", dpRank: 0, reason: "filtered" },
      { workerId: "4", dpRank: 0, reason: "not_allowed" },
    ]);
  });
});
