// A policy from its factory to its close: what it is told, and what happens when it errs then.
import { describe, expect, it, test } from "vitest";
import type { Logger } from "../../src/core/log.js";
import { parseWorker } from "../../src/core/worker.js";
import { Kernel } from "../../src/kernel/kernel.js";
import type { WorkerSelectionInit } from "../../src/plugins/worker-selection/contract.js";
import { lowestCost } from "../../src/plugins/worker-selection/lowest-cost.js";
import { WorkerSelectionPolicy } from "../../src/plugins/worker-selection/policy.js";
import type { SelectionCore } from "../../src/scheduling/selection-core.js";
import { forbidUnhandledRejections, settle } from "./classifier/harness.js";
import { coded, corePool, custom, nextDraw, policyPool, prompt, SIZE, silent, workers } from "./pool.js";

forbidUnhandledRejections();

/** A logger that keeps what it is told. */
function listening(): { log: Logger; errors: [string, unknown][] } {
  const errors: [string, unknown][] = [];
  const nothing = () => {};
  return {
    errors,
    log: { debug: nothing, info: nothing, warn: nothing, error: (text, fields) => errors.push([text, fields]) },
  };
}

describe("the factory", () => {
  it("is called once, with the pool that it makes a policy for", () => {
    const inits: WorkerSelectionInit[] = [];
    const core = corePool({
      role: "prefill",
      config: { routerTemperature: 2 },
      seed: 3n,
      policy(init) {
        inits.push(init);
        return new WorkerSelectionPolicy({ label: init.role });
      },
    });
    expect(inits).toHaveLength(1);
    const [init] = inits;
    expect(init).toMatchObject({ role: "prefill", partition: { model: "m", routingGroup: "default" } });
    expect([init!.config.routerTemperature, init!.now()]).toEqual([2, 42]);
    expect(init!.random()).toBe(nextDraw(corePool({ seed: 3n })));
    expect(core.policy.label).toBe("prefill");
  });

  it("may draw at once, and keeps to the pool's generator when the pool's state is restored", () => {
    let draw = () => 0;
    const core = corePool({
      policy({ random }) {
        draw = random;
        expect(random()).toBe(nextDraw(corePool()));
        return new WorkerSelectionPolicy({ label: "x" });
      },
    });
    const kernel = new Kernel({ blockSize: SIZE, maxRanks: 64, budgetBytes: 2 ** 24, ownNames: false, seed: 77n });
    core.adopt(kernel, new Map());
    expect(draw()).toBe(nextDraw(corePool({ seed: 77n })));
  });

  it("that throws is named, with its cause", () => {
    const cause = new Error("no");
    const policy = () => {
      throw cause;
    };
    const details = { model: "m", routingGroup: "default", role: "aggregated" };
    expect(() => corePool({ policy })).toThrow(coded("provider", { cause, details }));
  });

  it.each([
    undefined,
    null,
    {},
    "policy",
    Promise.resolve(),
    { label: "x", filters: [], scorers: [], picker: lowestCost },
  ])("that returns %s is refused", (garbage) => {
    expect(() => corePool({ policy: () => garbage as never })).toThrow(coded("invalid_plugin"));
  });

  it("that returns what cannot be looked at is refused", () => {
    const policy = () => new Proxy({}, { getPrototypeOf: () => expect.fail("do not look") });
    expect(() => corePool({ policy: policy as never })).toThrow(coded("invalid_plugin"));
  });

  it("that is async is refused, and leaves no rejection behind", async () => {
    const policy = async () => Promise.reject(new Error("no"));
    expect(() => corePool({ policy: policy as never })).toThrow(coded("invalid_plugin"));
    await settle();
  });

  it("makes a policy of its own for every pool", () => {
    const made: WorkerSelectionPolicy[] = [];
    const policy = () => {
      const one = new WorkerSelectionPolicy({ label: "x" });
      made.push(one);
      return one;
    };
    const pools = [corePool({ policy }), corePool({ policy })];
    expect(new Set(made).size).toBe(2);
    expect(pools.map((core) => core.policy)).toEqual(made);
  });
});

describe("slots", () => {
  function released(): { core: SelectionCore; slots: number[] } {
    const slots: number[] = [];
    return { slots, core: policyPool({ onSlotReleased: (slot) => slots.push(slot) }) };
  }

  it("are told once when their rank leaves, and used again", () => {
    const { core, slots } = released();
    const slot = core.ranks.get("2", 0)!.slot;
    core.removeRank("2", 0);
    core.removeRank("2", 0);
    core.removeRank("99", 0);
    expect(slots).toEqual([slot]);
    core.addRank(parseWorker({ workerId: 50 }), 0);
    expect(core.ranks.get("50", 0)!.slot).toBe(slot);
    expect(slots).toEqual([slot]);
  });

  it("are told when a restored state gives ranks other slots", () => {
    const { core, slots } = released();
    const kernel = new Kernel({ blockSize: SIZE, maxRanks: 64, budgetBytes: 2 ** 24, ownNames: false, seed: 1n });
    const [a, b, c, d] = [...core.ranks].map((rank) => rank.slot);
    const layout = new Map([
      [a!, b!],
      [b!, a!],
      [c!, c!],
      [d!, 9],
    ]);
    for (const { slot, workerId } of core.ranks) kernel.exports.rankAdd(layout.get(slot)!, BigInt(workerId), 0);
    core.adopt(kernel, layout);
    expect(slots.sort()).toEqual([a, b, d]);
    expect(core.select({ tokens: prompt(1, 2) }).worker.workerId).toMatch(/^[1-4]$/);
  });

  it("a throw is logged, and the rank is gone all the same", () => {
    const { log, errors } = listening();
    const error = new Error("no");
    const core = corePool({
      log,
      workers: workers(2),
      policy: custom({
        onSlotReleased() {
          throw error;
        },
      }),
    });
    core.removeRank("1", 0);
    expect(errors).toEqual([[expect.stringContaining("onSlotReleased"), { policy: "test", slot: 0, error }]]);
    expect(core.loads().map((row) => row.workerId)).toEqual(["2"]);
  });

  it("a rejection is logged, too", async () => {
    const { log, errors } = listening();
    const error = new Error("no");
    const policy = custom({ onSlotReleased: (async () => Promise.reject(error)) as () => void });
    const core = corePool({ log, workers: workers(2), policy });
    core.removeRank("1", 0);
    await settle();
    expect(errors).toEqual([[expect.stringContaining("onSlotReleased"), { policy: "test", slot: 0, error }]]);
  });

  it("may be answered with a call of the pool", () => {
    const seen: number[] = [];
    const core: SelectionCore = policyPool({ onSlotReleased: () => seen.push(core.loads().length) });
    core.removeRank("1", 0);
    expect(seen).toEqual([3]);
  });
});

test.each([
  [
    "throws",
    () => {
      throw new Error("disk full");
    },
  ],
  ["rejects", async () => Promise.reject(new Error("disk full"))],
])("a logger that %s changes nothing", async (_, error) => {
  const fails = () => {
    throw new Error("no");
  };
  const policy = custom({ onSlotReleased: fails, close: fails });
  const core = corePool({ log: { ...silent, error }, workers: workers(2), policy });
  core.removeRank("1", 0);
  expect(core.loads().map((row) => row.workerId)).toEqual(["2"]);
  await core.close();
  const bad = custom({ scorers: [{} as never], close: fails });
  expect(() => corePool({ log: { ...silent, error }, policy: bad })).toThrow(coded("invalid_plugin"));
  await settle();
});

describe("close", () => {
  it("is told once", async () => {
    let closed = 0;
    const core = policyPool({ close: () => void closed++ });
    await Promise.all([core.close(), core.close()]);
    await core.close();
    expect(closed).toBe(1);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("no");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no"))],
  ])("that %s is logged", async (_, close) => {
    const { log, errors } = listening();
    await corePool({ log, policy: custom({ close }) }).close();
    expect(errors).toEqual([[expect.stringContaining("close"), { policy: "test", error: new Error("no") }]]);
  });

  it("waits for what it is told", async () => {
    let isDone = false;
    const core = policyPool({
      async close() {
        await Promise.resolve();
        isDone = true;
      },
    });
    await core.close();
    expect(isDone).toBe(true);
  });

  it("a core whose policy is refused closes it, and reports the refusal", () => {
    let closed = 0;
    const policy = custom({ scorers: [{} as never], close: () => Promise.reject(new Error(`closed ${closed++}`)) });
    const { log, errors } = listening();
    expect(() => corePool({ policy, log })).toThrow(coded("invalid_plugin"));
    expect([closed, errors.length]).toEqual([1, 0]);
  });
});
