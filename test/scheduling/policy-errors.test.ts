// Components that err, and components that call the router that calls them (spec: plugins.md §3.2, §9).
import { describe, expect, it } from "vitest";
import { WorkerInputs } from "../../src/plugins/worker-selection/components.js";
import type { WorkerSelectionPolicyOptions } from "../../src/plugins/worker-selection/policy.js";
import type { PoolBooking } from "../../src/scheduling/bookings/booking.js";
import type { SelectionCore } from "../../src/scheduling/selection-core.js";
import { coded, costs, holds, nextDraw, noted, picks, policyPool as poolOf, prompt } from "./pool.js";

const doNotLook = () => {
  throw new Error("do not look");
};
const hostile = new Proxy({}, { has: doNotLook, get: doNotLook, getPrototypeOf: doNotLook });
const oddPromise = () =>
  Object.defineProperty(Promise.reject(1), "constructor", { get: doNotLook, configurable: true });

const { CACHE, LOAD } = WorkerInputs;
const tokens = prompt(1, 4);

/** All that a failed selection must leave as it was: loads, bookings, and what the generator draws next. */
const state = (core: SelectionCore): unknown => [
  core.loads(),
  core.bookings.length,
  core.decisions,
  core.probe({ tokens: prompt(99, 1) }),
];

describe("a component that errs", () => {
  const throws = () => {
    throw new Error("secret prompt");
  };
  const failed = (component: string, index: number) =>
    coded("policy_failed", { status: 500, details: { policy: "test", component, index } });
  const nonFinite = (scorerIndex: number, row: number) =>
    coded("non_finite_cost", { status: 500, details: { scorerIndex, row } });
  const badRow = (row: unknown) => coded("invalid_picker_row", { status: 500, details: { row, candidateCount: 4 } });

  const max = Number.MAX_VALUE;
  const table: [string, Partial<WorkerSelectionPolicyOptions>, unknown][] = [
    ["a filter throws", { filters: [{ keep: () => true }, { keep: throws }] }, failed("filter", 1)],
    ["a filter returns nothing", { filters: [{ keep: () => undefined as never }] }, failed("filter", 0)],
    ["a filter returns 1", { filters: [{ keep: () => 1 as never }] }, failed("filter", 0)],
    ["a filter is async", { filters: [{ keep: (async () => true) as never }] }, failed("filter", 0)],
    ["a scorer throws", { scorers: [costs(1, 1, 1, 1), { score: throws }] }, failed("scorer", 1)],
    [
      "a scorer throws no Error",
      {
        scorers: [
          {
            score() {
              throw undefined;
            },
          },
        ],
      },
      failed("scorer", 0),
    ],
    [
      "a scorer is async",
      { scorers: [{ score: (async (_: never, _rows: never, out: Float64Array) => void out.fill(1)) as never }] },
      failed("scorer", 0),
    ],
    [
      "a scorer is async and fails",
      { scorers: [{ score: (async () => Promise.reject(new Error("late"))) as never }] },
      failed("scorer", 0),
    ],
    ["a scorer writes nothing", { scorers: [{ score() {} }] }, nonFinite(0, 0)],
    ["a scorer writes too little", { scorers: [costs(1, 1, 1, 1), costs(1, 1)] }, nonFinite(1, 2)],
    ["a scorer writes NaN", { scorers: [costs(1, Number.NaN, 1, Number.NaN)] }, nonFinite(0, 1)],
    ["a scorer writes Infinity", { scorers: [costs(1, 1, 1, Number.POSITIVE_INFINITY)] }, nonFinite(0, 3)],
    ["a scorer writes -Infinity", { scorers: [costs(Number.NEGATIVE_INFINITY, 1, 1, 1)] }, nonFinite(0, 0)],
    ["a sum overflows", { scorers: [costs(1, 1, max, 1), costs(1, 1, max, 1)] }, nonFinite(1, 2)],
    ["a scorer writes too much", { scorers: [costs(1, 1, 1, 1, 1)] }, failed("scorer", 0)],
    ["a picker throws", { picker: { pick: throws } }, failed("picker", 0)],
    ["a picker returns −1", { picker: picks(-1) }, badRow(-1)],
    ["a picker returns 1.5", { picker: picks(1.5) }, badRow(1.5)],
    ["a picker returns NaN", { picker: picks(Number.NaN) }, badRow(Number.NaN)],
    ["a picker returns nothing", { picker: picks(undefined) }, badRow("undefined")],
    ["a picker returns a row too far", { picker: picks(4) }, badRow(4)],
    ["a picker returns Infinity", { picker: picks(Number.POSITIVE_INFINITY) }, badRow(Number.POSITIVE_INFINITY)],
    ["a picker returns a string", { picker: picks("0") }, badRow("a string")],
    ["a picker returns a bigint", { picker: picks(0n) }, badRow("a bigint")],
    ["a picker returns a proxy", { picker: { pick: () => hostile as never } }, badRow("a object")],
    ["a picker returns a promise like no other", { picker: { pick: oddPromise as never } }, badRow("a promise")],
    ["a picker is async", { picker: { pick: (async () => 0) as never } }, badRow("a promise")],
    ["randomBelow(0)", { picker: { pick: (ctx) => ctx.randomBelow(0) } }, failed("picker", 0)],
    ["a row that is none", { picker: { pick: (_, rows) => Number(rows.workerId(9)) } }, failed("picker", 0)],
  ];

  it.each(table)("%s: a typed error, and nothing has changed", (_, options, error) => {
    const { filters = [], scorers = [], picker } = options;
    let isFaulty = false;
    const core = poolOf({
      filters: filters.map((filter) => ({
        keep: (ctx, rows, row) => (isFaulty ? filter.keep(ctx, rows, row) : true),
      })),
      scorers: scorers.map((scorer) => ({
        score: (ctx, rows, out) => (isFaulty ? scorer.score(ctx, rows, out) : void out.fill(0)),
      })),
      picker: { pick: (ctx, rows) => (ctx.random() >= 0 && isFaulty && picker ? picker.pick(ctx, rows) : 3) },
    });
    core.select({ requestId: "before", tokens });
    const before = state(core);
    isFaulty = true;
    for (const ask of [() => core.select({ requestId: "x", tokens }), () => core.probe({ tokens })]) {
      expect(ask).toThrow(error as never);
    }
    isFaulty = false;
    expect(state(core)).toEqual(before);
    expect(core.select({ requestId: "x", tokens }).worker.workerId).toBe("4");
  });

  it("keeps the cause, and does not quote it", () => {
    const core = poolOf({ scorers: [{ score: throws }] });
    const error = (() => {
      try {
        return core.select({ tokens });
      } catch (caught) {
        return caught as Error;
      }
    })() as Error;
    expect(error.message).toBe('the scorer 0 of the policy "test" failed');
    expect((error.cause as Error).message).toBe("secret prompt");
    expect(JSON.stringify({ ...error })).not.toContain("secret");
  });

  it("leaves the generator where it was", () => {
    const core = poolOf({
      filters: [{ keep: (ctx) => ctx.random() >= 0 }],
      scorers: [{ score: (ctx) => void ctx.random() }],
    });
    const twin = poolOf({});
    expect(() => core.select({ tokens })).toThrow(coded("non_finite_cost"));
    expect(nextDraw(core)).toBe(nextDraw(twin));
  });

  it("does not run later scorers or the picker after a bad cost", () => {
    const ran: string[] = [];
    const core = poolOf({
      scorers: [{ score() {} }, { score: () => void ran.push("scorer") }],
      picker: { pick: () => ran.push("picker") },
    });
    expect(() => core.select({ tokens })).toThrow();
    expect(ran).toEqual([]);
  });

  it("books nothing when memory ends at the booking", () => {
    const core = poolOf({ picker: { pick: (ctx) => Math.floor(ctx.random()) } }, { budgetBytes: 2 ** 20 });
    const twin = poolOf({});
    let error: unknown;
    let selected = 0;
    for (let i = 0; i < 10_000 && !error; i++) {
      try {
        core.select({ tokens: prompt(i, 40) });
        selected++;
      } catch (caught) {
        error = caught;
      }
    }
    expect(error).toEqual(coded("memory_budget"));
    expect(core.bookings).toHaveLength(selected);
    for (let i = 0; i < selected; i++) nextDraw(twin);
    expect(nextDraw(core)).toBe(nextDraw(twin));
    core.bookings[0]!.free();
    expect(core.select({ tokens: prompt(0, 2) }).worker.workerId).toBe("1");
  });
});

describe("a component that calls the router", () => {
  let core: SelectionCore;
  const tries: [string, () => unknown][] = [
    ["select", () => core.select({ tokens: prompt(7, 2) })],
    ["probe", () => core.probe({ tokens: prompt(7, 2) })],
    ["reserve", () => core.reserve("r", core.ranks.get("1", 0)!, [1n], 16, 16)],
    ["add a rank", () => core.addRank({ ...core.ranks.at(0).record, workerId: "9" }, 0)],
    ["remove a rank", () => core.removeRank("1", 0)],
    ["restart a rank", () => core.restartRank(core.ranks.get("1", 0)!)],
    ["overload a rank", () => core.ranks.setOverloaded(core.ranks.get("1", 0)!, true)],
    ["store blocks", () => holds(core, "1", tokens, 2)],
    ["clear", () => core.contents.clear(core.ranks.get("1", 0)!)],
    ["overlap", () => core.contents.overlap(1)],
    ["loads", () => core.loads()],
    ["adopt", () => core.adopt(core.kernel, new Map())],
  ];
  for (const component of ["filter", "scorer", "picker"] as const) {
    it.each(tries)(`${component}: %s is refused, and corrupts nothing`, (_, call) => {
      let isCalling = true;
      const errors: unknown[] = [];
      const attempt = (here: string) => {
        if (!isCalling || here !== component) return;
        try {
          call();
        } catch (error) {
          errors.push(error);
        }
      };
      core = poolOf({
        filters: [
          {
            requiredInputs: CACHE,
            keep() {
              attempt("filter");
              return true;
            },
          },
        ],
        scorers: [
          {
            score(_, _rows, out) {
              attempt("scorer");
              out.set([2, 1, 1, 3]);
            },
          },
        ],
        picker: {
          pick(ctx) {
            attempt("picker");
            return 1 + ctx.randomBelow(2);
          },
        },
      });
      isCalling = false;
      core.select({ requestId: "first", tokens });
      const reference = [core.loads(), core.bookings.length, core.contents.refused];
      const expected = core.probe({ tokens });
      isCalling = true;
      expect(core.probe({ tokens })).toEqual(expected);
      expect(errors.length).toBeGreaterThan(0);
      for (const error of errors) expect(error).toEqual(coded("policy_failed"));
      isCalling = false;
      expect([core.loads(), core.bookings.length, core.contents.refused]).toEqual(reference);
      expect(core.probe({ tokens })).toEqual(expected);
      isCalling = true;
      expect(core.select({ tokens }).worker).toEqual(expected.selected);
    });
  }

  it("fails when it does not catch that", () => {
    core = poolOf({ scorers: [{ score: () => void core.probe({ tokens }) }] });
    expect(() => core.select({ tokens })).toThrow(coded("policy_failed", { cause: coded("policy_failed") }));
    expect(core.bookings).toEqual([]);
  });

  const verbs: [string, (booking: PoolBooking) => void, object][] = [
    ["free", (booking) => booking.free(), { activePrefillTokens: 0, activeDecodeBlocks: 0, activeRequests: 0 }],
    ["abort", (booking) => booking.abort(), { activePrefillTokens: 0, activeDecodeBlocks: 0, activeRequests: 0 }],
    ["prefillComplete", (booking) => booking.prefillComplete(), { activePrefillTokens: 0, activeDecodeBlocks: 4 }],
    ["outputBlock", (booking) => booking.outputBlock(), { activePrefillTokens: 64, activeDecodeBlocks: 5 }],
  ];
  it.each(verbs)("%s of a booking is never refused: it waits for the end of the decision", (_, act, then) => {
    let isActing = false;
    const seen: number[][] = [];
    core = poolOf({
      filters: [
        {
          requiredInputs: LOAD,
          keep(_ctx, rows, row) {
            if (isActing && row === 0) act(core.bookings[0]!);
            return rows.workerId(row) !== "4";
          },
        },
      ],
      scorers: [
        { requiredInputs: LOAD, score: (_ctx, { load }, out) => noted(seen, [...load!.activeRequests], out.fill(0)) },
      ],
    });
    core.select({ tokens, pinnedWorker: { workerId: "1" } });
    isActing = true;
    expect(core.probe({ tokens }).outcome).toBe("selected");
    expect(seen.at(-1)).toEqual([1, 0, 0]); // what the components see does not change under them
    expect(core.loads()[0]).toMatchObject(then);
  });

  it("a booking that ends in a component that then fails has ended", () => {
    core = poolOf({
      scorers: [
        {
          score() {
            core.bookings[0]?.free();
            throw new Error("no");
          },
        },
      ],
    });
    core.reserve("r", core.ranks.get("1", 0)!, [1n, 2n], 32, 32);
    expect(() => core.select({ tokens })).toThrow(coded("policy_failed"));
    expect(core.loads()[0]).toMatchObject({ activePrefillTokens: 0, activeDecodeBlocks: 0, activeRequests: 0 });
  });

  it("may ask another pool", () => {
    const other = poolOf({});
    core = poolOf({ picker: { pick: () => Number(other.select({ tokens }).worker.workerId) - 1 } });
    expect(core.select({ tokens }).worker).toEqual(other.bookings[0]!.worker);
  });
});
