// The shipped policies as policies: their parameters, what overrides do, and that they need no component here.
import { describe, expect, it } from "vitest";
import { configFields, defaultConfig, snakeCase } from "../../src/core/config.js";
import { builtInProviders, defaultSelection, registerBuiltIns } from "../../src/plugins/worker-selection/built-in.js";
import type { KernelPolicy } from "../../src/plugins/worker-selection/kernel-policy.js";
import { perRow } from "../../src/plugins/worker-selection/per-row.js";
import type { SelectionCore } from "../../src/scheduling/selection-core.js";
import { builtIn, corePool, holds, load, parametersOf, policyPool, prompt, workers } from "./pool.js";

const DEFAULT = "dynamo-default-cost-fn";
const TWO_TIER = "dynamo-two-tier-cost-fn";
const tokens = prompt(1, 10);

/** Two ranks: 1 holds 6 of the prompt's 10 blocks on its device and works on 64 prompt tokens, 2 holds 4 on its host. */
function tiered(setUp: Parameters<typeof corePool>[0] = {}): SelectionCore {
  const core = corePool({ workers: workers(2), ...setUp });
  holds(core, "1", tokens, 6);
  holds(core, "2", tokens, 4, "host_pinned");
  load(core, "1", 1, 64);
  return core;
}

const costsOf = (core: SelectionCore, configOverride = {}) =>
  core.probe({ tokens, configOverride }).candidates.map((candidate) => candidate.cost);

describe("registration", () => {
  it("ships these types", () => {
    const names: string[] = [];
    registerBuiltIns({ registerWorkerSelection: (name) => names.push(name) });
    expect(names.sort()).toEqual([DEFAULT, TWO_TIER]);
  });
});

describe(DEFAULT, () => {
  it("costs as spec: plugins.md §4.1 says", () => {
    // 1: (64 + 160) / 16 − 6; 2: 10 − 0.75 · 4. Both would decode 10 blocks more.
    expect(costsOf(tiered())).toEqual([18, 17]);
  });

  it.each([
    ["overlap_score_credit", 0.5, [21, 17]],
    ["overlap_score_credit_decay", 2, [18 + 6 - 6 / 1.8, 17]],
    ["prefill_load_scale", 2, [26, 24]],
    ["decode_active_request_weight", 3, [21, 17]],
    ["host_cache_hit_weight", 0.25, [18, 19]],
    ["disk_cache_hit_weight", 0.5, [18, 17]],
    ["shared_cache_multiplier", 0.5, [18, 17]],
  ])("parameter %s: %d", (name, value, costs) => {
    const core = tiered({ policy: builtIn(DEFAULT, { [name]: value }) });
    expect(costsOf(core)).toEqual(costs.map((cost) => expect.closeTo(cost, 12)));
  });

  it("router_temperature draws", () => {
    expect(tiered({ policy: builtIn(DEFAULT, { router_temperature: 1 }) }).select({ tokens }).reason).toBe("sampled");
  });

  it("takes the router's configuration where it has no parameter", () => {
    const config = { prefillLoadScale: 2, overlapScoreCredit: 0.5 };
    const policy = builtIn(DEFAULT, { overlap_score_credit: 1 });
    expect(costsOf(tiered({ config, policy }))).toEqual([26, 24]);
  });

  const overrides = { overlapScoreCredit: 0, prefillLoadScale: 3, routerTemperature: 1 };

  it("honours the override of a request only where it has no parameter", () => {
    const free = tiered();
    const fixed = tiered({ policy: builtIn(DEFAULT, { overlap_score_credit: 1, router_temperature: 0 }) });
    expect(costsOf(free, overrides)).toEqual([52, 31]);
    expect(costsOf(fixed, overrides)).toEqual([34, 31]);
    expect(fixed.select({ tokens, configOverride: overrides }).reason).toBe("cost");
    expect(free.select({ tokens, configOverride: overrides }).reason).toBe("sampled");
  });

  it("without parameters decides as the default policy, under overrides too", () => {
    const pools = [defaultSelection, builtIn(DEFAULT)].map((policy) => tiered({ policy, seed: 9n }));
    const [ours, theirs] = pools.map((core) =>
      Array.from({ length: 200 }, (_, i) => {
        const configOverride = i % 3 === 0 ? overrides : {};
        const { worker, reason, candidates } = core.select({
          tokens: prompt(i % 5, 10),
          configOverride,
          explain: true,
        });
        return [worker, reason, candidates];
      }),
    );
    expect(theirs).toEqual(ours);
  });

  it("accounts for what is cached by the router's weights, not its own", () => {
    const core = tiered({ policy: builtIn(DEFAULT, { host_cache_hit_weight: 0 }) });
    // 4 blocks on the host at 0.75 are 48 tokens of 160.
    const { cachedTokens, effectivePrefillTokens } = core.select({ tokens, pinnedWorker: { workerId: 2 } });
    expect([cachedTokens, effectivePrefillTokens]).toEqual([48, 112]);
  });

  it("keeps host credit at credit 0", () => {
    expect(costsOf(tiered({ config: { overlapScoreCredit: 0 } }))).toEqual([24, 17]);
  });

  const noCredit = { overlapScoreCredit: 0, hostCacheHitWeight: 0, diskCacheHitWeight: 0, sharedCacheMultiplier: 0 };
  it.each([
    ["with credits", {}, {}, true],
    ["without any", noCredit, {}, false],
    ["with a parameter for one", noCredit, { disk_cache_hit_weight: 0.5 }, true],
    [
      "with parameters against all",
      {},
      { overlap_score_credit: 0, host_cache_hit_weight: 0, disk_cache_hit_weight: 0, shared_cache_multiplier: 0 },
      false,
    ],
  ])("keeps an index %s: %j %j", (_, config, parameters, usesIndex) => {
    const core = corePool({ config, policy: builtIn(DEFAULT, parameters), workers: workers(1) });
    expect(core.usesIndex).toBe(usesIndex);
    if (!usesIndex) expect(() => holds(core, "1", tokens, 2)).toThrow("no_index");
  });

  it("an affinity binds, and draws nothing", () => {
    const core = corePool({ workers: workers(4), config: { routerTemperature: 1 } });
    const { worker, reason } = core.select({ tokens, affinityTarget: { workerId: 3 }, explain: true });
    expect([worker.workerId, reason]).toEqual(["3", "affinity"]);
    expect(core.kernel.random()).toBe(corePool().kernel.random());
  });

  it("an affinity to a worker of several ranks narrows to them", () => {
    const core = corePool({ workers: [{ workerId: 1, dpSize: 2 }, { workerId: 2 }] });
    const { reason, candidates } = core.select({ tokens, affinityTarget: { workerId: 1 }, explain: true });
    expect(reason).toBe("affinity");
    expect(candidates!.map(({ dpRank, probability }) => [dpRank, probability])).toEqual([
      [0, 0.5],
      [1, 0.5],
    ]);
    expect(core.probe({ tokens, affinityTarget: { workerId: 1 } }).excluded).toEqual([
      { workerId: "2", dpRank: 0, reason: "not_pinned" },
    ]);
  });
});

describe(TWO_TIER, () => {
  it("an affinity does not bind", () => {
    const core = corePool({ workers: workers(2), policy: builtIn(TWO_TIER) });
    load(core, "1", 3);
    expect(core.select({ tokens, affinityTarget: { workerId: 1 } }).worker.workerId).toBe("2");
  });

  it.each([
    [
      "cache_threshold 0.5: 5 of 10 blocks are not more",
      {},
      [
        [0, 0],
        [5, 4],
      ],
      "1",
    ],
    [
      "6 of 10 are",
      {},
      [
        [0, 0],
        [6, 4],
      ],
      "2",
    ],
    [
      "cache_threshold 0.4",
      { cache_threshold: 0.4 },
      [
        [0, 0],
        [5, 4],
      ],
      "2",
    ],
    [
      "imbalanced: fully cached, 40 requests apart",
      {},
      [
        [0, 0],
        [10, 40],
      ],
      "1",
    ],
    [
      "balance_abs_threshold 50",
      { balance_abs_threshold: 50 },
      [
        [0, 0],
        [10, 40],
      ],
      "2",
    ],
    [
      "balance_rel_threshold 100",
      { balance_rel_threshold: 100 },
      [
        [0, 1],
        [10, 40],
      ],
      "2",
    ],
  ] as const)("%s", (_, parameters, rows, expected) => {
    const core = corePool({ workers: workers(2), policy: builtIn(TWO_TIER, parameters) });
    for (const [i, [blocks, requests]] of rows.entries()) {
      if (blocks > 0) holds(core, String(i + 1), tokens, blocks);
      load(core, String(i + 1), requests);
    }
    expect(core.select({ tokens }).worker.workerId).toBe(expected);
  });
});

describe("wrong parameters", () => {
  const issue = (code: string, path: string[], more: object = {}) => [expect.objectContaining({ code, path, ...more })];
  const range = (name: keyof typeof configFields) => configFields[name] as { min: number; max: number };
  const unit = Object.keys(configFields).filter(
    (name) =>
      name !== "activeDecodeBlocksThreshold" && (configFields as Record<string, { max?: number }>)[name]!.max === 1,
  );

  it.each([
    [DEFAULT, { overlap_score_credit: -1 }, issue("too_small", ["overlap_score_credit"], { minimum: 0 })],
    [DEFAULT, { overlap_score_credit: "1" }, issue("invalid_type", ["overlap_score_credit"], { expected: "number" })],
    [DEFAULT, { overlap_score_credit: null }, issue("invalid_type", ["overlap_score_credit"])],
    [DEFAULT, { prefill_load_scale: Number.NaN }, issue("invalid_type", ["prefill_load_scale"])],
    [DEFAULT, { prefill_load_scale: Number.POSITIVE_INFINITY }, issue("too_big", ["prefill_load_scale"])],
    [DEFAULT, { host_cache_hit_weight: 1.1 }, issue("too_big", ["host_cache_hit_weight"], { maximum: 1 })],
    [DEFAULT, { temperature: 1 }, issue("unrecognized_keys", [], { keys: ["temperature"] })],
    [DEFAULT, { router_track_prefill_tokens: true }, issue("unrecognized_keys", [])],
    [DEFAULT, { overlapScoreCredit: 1 }, issue("unrecognized_keys", [], { keys: ["overlapScoreCredit"] })],
    [TWO_TIER, { cache_threshold: 1.5 }, issue("too_big", ["cache_threshold"], { maximum: 1 })],
    [TWO_TIER, { cache_threshold: -0.1 }, issue("too_small", ["cache_threshold"], { minimum: 0 })],
    [TWO_TIER, { balance_abs_threshold: 1.5 }, issue("invalid_type", ["balance_abs_threshold"], { expected: "int" })],
    [TWO_TIER, { balance_abs_threshold: -1 }, issue("too_small", ["balance_abs_threshold"])],
    [TWO_TIER, { balance_rel_threshold: 0.9 }, issue("too_small", ["balance_rel_threshold"], { minimum: 1 })],
    [TWO_TIER, { balance_rel_threshold: [2] }, issue("invalid_type", ["balance_rel_threshold"])],
    [TWO_TIER, { a: 1, b: 2 }, issue("unrecognized_keys", [], { keys: ["a", "b"] })],
    [
      TWO_TIER,
      { cache_threshold: 2, balance_abs_threshold: "x", c: 1 },
      [
        ...issue("too_big", ["cache_threshold"]),
        ...issue("invalid_type", ["balance_abs_threshold"]),
        ...issue("unrecognized_keys", [], { keys: ["c"] }),
      ],
    ],
  ])("%s %j", (type, parameters, issues) => {
    const provider = () => builtInProviders[type]!(parametersOf(parameters as Record<string, unknown>));
    expect(provider).toThrow(expect.objectContaining({ issues }));
  });

  it("has the ranges of the router's configuration", () => {
    expect(unit.map(snakeCase)).toEqual(["host_cache_hit_weight", "disk_cache_hit_weight", "shared_cache_multiplier"]);
    for (const name of unit) {
      const at = (value: number) => () => builtInProviders[DEFAULT]!(parametersOf({ [snakeCase(name)]: value }));
      expect(at(range(name as keyof typeof configFields).max)).not.toThrow();
      expect(at(1.0001)).toThrow();
    }
  });
});

describe("draws", () => {
  const n = 20_000;
  const shares = (config: object, loads: readonly number[]) => {
    const core = corePool({ workers: workers(loads.length), config, seed: 11n });
    loads.forEach((blocks, i) => {
      load(core, String(i + 1), 1, 0, blocks);
    });
    const counts = loads.map(() => 0);
    for (let i = 0; i < n; i++) {
      const { worker, booking } = core.select({ tokens });
      counts[Number(worker.workerId) - 1]!++;
      booking.free();
    }
    return counts.map((count) => count / n);
  };
  /** Five standard deviations of a share. */
  const within = (p: number) => 5 * Math.sqrt((p * (1 - p)) / n);

  it.each([
    ["ties are even", { routerTemperature: 0 }, [0, 0, 0, 4], [1 / 3, 1 / 3, 1 / 3, 0]],
    ["temperature 0.5 (spec: plugins.md §4.2)", { routerTemperature: 0.5 }, [0, 2, 10], [0.5538, 0.3712, 0.075]],
    ["temperature 5", { routerTemperature: 5 }, [0, 2, 10], [0.3598, 0.3457, 0.2946]],
    ["equal costs at a temperature", { routerTemperature: 1 }, [3, 3], [0.5, 0.5]],
  ])("%s", (_, config, loads, wanted) => {
    shares(config, loads).forEach((share, i) => {
      expect(Math.abs(share - wanted[i]!)).toBeLessThanOrEqual(within(wanted[i]!) + 5e-5);
    });
  });
});

describe("one call", () => {
  it("a built-in policy crosses into the kernel once, one of components twice, and once more for filters", () => {
    const count = (core: SelectionCore) => {
      for (let i = 0; i < 3; i++) core.select({ tokens, requestId: `warm ${i}` });
      const { exports } = core.kernel;
      const calls: string[] = [];
      for (const [name, verb] of Object.entries(exports)) {
        if (typeof verb !== "function") continue;
        exports[name] = (...args: unknown[]) => {
          calls.push(name);
          return verb(...args);
        };
      }
      core.select({ tokens, requestId: "counted" });
      return calls;
    };
    const scorers = [perRow(3, (_, rows, row) => rows.load!.activeRequests[row]!)];
    expect(count(corePool({ workers: workers(4) }))).toEqual(["decide"]);
    expect(count(policyPool({ scorers }))).toEqual(["prepare", "commit"]);
    expect(count(policyPool({ scorers, filters: [{ keep: () => true }] }))).toEqual(["prepare", "gather", "commit"]);
  });

  it("is a policy without components of its own", () => {
    const policy = defaultSelection({ config: defaultConfig } as never) as KernelPolicy;
    expect([policy.label, policy.scorers, policy.filters, policy.exclusiveAffinity]).toEqual([DEFAULT, [], [], true]);
  });
});
