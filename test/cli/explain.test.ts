import { describe, expect, it } from "vitest";
import "../../src/kernel/inlined.js";
import { explainScenario } from "../../src/cli/scenario.js";
import { golden } from "../golden.js";

type Row = { worker_id: string; dp_rank: number; cost?: number; probability?: number };
interface Case {
  scenario: { name: string } & Record<string, unknown>;
  expected: { outcome: string; candidates: Row[] } & Record<string, unknown>;
}

function expectClose(actual: unknown, wanted: number, tolerance: number): void {
  expect(Math.abs((actual as number) - wanted)).toBeLessThanOrEqual(tolerance * Math.max(1, Math.abs(wanted)));
}

describe.each(["costs", "two-tier"])("golden %s", (file) => {
  it.each(golden<Case[]>(file).map((c) => [c.scenario.name, c] as const))("%s", (_, { scenario, expected }) => {
    const answer = explainScenario(scenario) as { outcome: string; candidates: Row[] };
    expect(answer.outcome).toBe(expected.outcome);
    expect(answer.candidates).toHaveLength(expected.candidates.length);
    const text = JSON.stringify(scenario);
    const tolerance = /router_temperature|preferred_taints/.test(text) ? 1e-9 : 1e-12;
    expected.candidates.forEach((row, i) => {
      const got = answer.candidates[i]!;
      expect([got.worker_id, got.dp_rank]).toEqual([row.worker_id, row.dp_rank]);
      if (row.cost !== undefined) expectClose(got.cost, row.cost, tolerance);
      if (row.probability !== undefined) expectClose(got.probability, row.probability, tolerance);
    });
    for (const key of Object.keys(expected)) expect(["outcome", "candidates"]).toContain(key);
  });
});

const scenario = (change: object = {}) => ({
  block_size: 16,
  request: { input_tokens: 160 },
  workers: [{ worker_id: "1" }, { worker_id: 2, dp_rank: 1, overloaded: true, taints: ["a"] }],
  ...change,
});

describe("explain", () => {
  it("says every term, and why ranks are excluded", () => {
    expect(explainScenario(scenario({ name: "n" }))).toEqual({
      name: "n",
      outcome: "selected",
      selected: { worker_id: "1", dp_rank: 0 },
      candidates: [
        {
          worker_id: "1",
          dp_rank: 0,
          cost: 10,
          probability: 1,
          terms: {
            raw_prefill_blocks: 10,
            decay: 1,
            device_credit: 0,
            host_credit: 0,
            disk_credit: 0,
            shared_credit: 0,
            prefill_cost: 10,
            decode_blocks: 0,
            active_request_cost: 0,
            taint_multiplier: 1,
          },
        },
      ],
      excluded: [{ worker_id: "2", dp_rank: 1, reason: "overloaded" }],
    });
  });

  it("reports a pin with probability 1 and without the taint factor", () => {
    const request = {
      input_tokens: 160,
      pinned_worker: { worker_id: "1" },
      routing_constraints: { preferred_taints: { a: 1 } },
    };
    const workers = [{ worker_id: "1", taints: ["a"] }, { worker_id: "2" }];
    expect(explainScenario(scenario({ request, workers }))).toMatchObject({
      candidates: [{ worker_id: "1", cost: 10, probability: 1 }],
      excluded: [{ worker_id: "2", reason: "not_pinned" }],
    });
  });

  it("two-tier has no cost and names its branch", () => {
    const policy = { type: "dynamo-two-tier-cost-fn" };
    const answer = explainScenario(scenario({ policy })) as { candidates: object[] };
    expect(answer.candidates).toEqual([
      {
        worker_id: "1",
        dp_rank: 0,
        probability: 1,
        terms: { active_requests: 0, device_overlap_blocks: 0, branch: "least_loaded" },
      },
    ]);
  });

  it("two-tier says a pin's real branch", () => {
    const request = { input_tokens: 160, pinned_worker: { worker_id: "1" } };
    const answer = explainScenario(scenario({ policy: { type: "dynamo-two-tier-cost-fn" }, request }));
    expect(answer).toMatchObject({ candidates: [{ terms: { branch: "least_loaded" } }] });
  });

  it.each([
    ["an unknown key", scenario({ extra: 1 }), "extra"],
    ["an unknown nested key", scenario({ request: { input_tokens: 1, x: 1 } }), "request.x"],
    ["a wrong type", scenario({ block_size: "16" }), "block_size"],
    ["block size 0", scenario({ block_size: 0 }), "block_size"],
    ["block size 1.5", scenario({ block_size: 1.5 }), "block_size"],
    ["block size 2^31", scenario({ block_size: 2 ** 31 }), "block_size"],
    ["no workers key", scenario({ workers: undefined }), "workers"],
    ["a duplicate rank", scenario({ workers: [{ worker_id: "1" }, { worker_id: 1 }] }), "workers[1]"],
    ["a worker id too big", scenario({ workers: [{ worker_id: "99999999999999999999" }] }), "workers[0].worker_id"],
    ["a negative load", scenario({ workers: [{ worker_id: "1", active_requests: -1 }] }), "workers[0].active_requests"],
    [
      "overlapping ranges",
      scenario({
        request: {
          input_tokens: 1,
          shared_cache_ranges: [
            [0, 2],
            [1, 3],
          ],
        },
      }),
      "request.shared_cache_ranges[1]",
    ],
    ["a list", [], ""],
  ])("refuses %s", (_, input, path) => {
    expect(() => explainScenario(input)).toThrowError(expect.objectContaining({ code: "invalid_scenario", path }));
  });

  const first = (worker: object) => scenario({ workers: [{ worker_id: "1", ...worker }] });
  const policy = (type: unknown) => scenario({ policy: { type } });
  it.each([
    [scenario({ workers: undefined }), "workers is missing"],
    [scenario({ request: {} }), "request.input_tokens is missing"],
    [first({ worker_id: undefined }), "workers[0].worker_id is missing"],
    [policy(undefined), "policy.type is missing"],
    [policy("cheapest"), 'policy.type must be one of dynamo-default-cost-fn, dynamo-two-tier-cost-fn, not "cheapest"'],
    [scenario({ policy: 3 }), "policy must be an object, not 3"],
    [scenario({ role: "chef" }), 'role must be one of aggregated, prefill, decode, encode, not "chef"'],
    [scenario({ block_size: "16" }), 'block_size must be a number, not "16"'],
    [scenario({ block_size: null }), "block_size must be a number, not null"],
    [scenario({ block_size: 1.5 }), "block_size must be a whole number, not 1.5"],
    [scenario({ block_size: 0 }), "block_size must be at least 1, not 0"],
    [scenario({ block_size: 2 ** 31 }), "block_size must be at most 1048576, not 2147483648"],
    [scenario({ request: { input_tokens: 0 } }), "request.input_tokens must be more than 0, not 0"],
    [scenario({ workers: {} }), "workers must be a list, not an object"],
    [scenario({ workers: ["1"] }), 'workers[0] must be an object, not "1"'],
    [first({ overloaded: 1 }), "workers[0].overloaded must be true or false, not 1"],
    [first({ taints: [3] }), "workers[0].taints[0] must be a string, not 3"],
    [first({ worker_id: "x" }), 'workers[0].worker_id must be a 64-bit integer, not "x"'],
    [first({ worker_id: 1.5 }), "workers[0].worker_id must be a 64-bit integer, not 1.5"],
    [first({ worker_id: null }), "workers[0].worker_id must be a 64-bit integer, not null"],
    [scenario({ seed: "99999999999999999999" }), 'seed must be a 64-bit integer, not "99999999999999999999"'],
    // As parseJson gives numbers of 16 digits and more.
    [first({ active_requests: "12345678901234567" }), "workers[0].active_requests is too large: 12345678901234567"],
    [first({ active_requests: 2 ** 60 }), `workers[0].active_requests is too large: ${2 ** 60}`],
    [
      scenario({ request: { input_tokens: 1, shared_cache_ranges: [[1]] } }),
      "request.shared_cache_ranges[0] must be a pair of numbers, not an array",
    ],
    [scenario({ extra: 1 }), "extra is not a known field"],
    [[], "the scenario must be an object, not an array"],
  ])("%j: %s", (input, message) => {
    expect(() => explainScenario(input)).toThrowError(expect.objectContaining({ code: "invalid_scenario", message }));
  });

  const withParameters = (type: string, parameters: unknown) => scenario({ policy: { type, parameters } });
  const twoTier = (parameters: unknown) => withParameters("dynamo-two-tier-cost-fn", parameters);
  const byCost = (parameters: unknown) => withParameters("dynamo-default-cost-fn", parameters);
  it.each([
    [twoTier({ cache_treshold: 1 }), "policy.parameters.cache_treshold", "is not a known field"],
    [twoTier({ cache_threshold: 2 }), "policy.parameters.cache_threshold", "must be at most 1, not 2"],
    [twoTier({ cache_threshold: "1" }), "policy.parameters.cache_threshold", 'must be a number, not "1"'],
    [
      twoTier({ balance_abs_threshold: 1.5 }),
      "policy.parameters.balance_abs_threshold",
      "must be a whole number, not 1.5",
    ],
    [
      twoTier({ balance_abs_threshold: 2 ** 60 }),
      "policy.parameters.balance_abs_threshold",
      `is too large: ${2 ** 60}`,
    ],
    [twoTier({ balance_rel_threshold: 0.5 }), "policy.parameters.balance_rel_threshold", "must be at least 1, not 0.5"],
    [byCost({ overlap_score_credit: -1 }), "policy.parameters.overlap_score_credit", "must be at least 0, not -1"],
    [byCost({ disk_cache_hit_weight: 1.5 }), "policy.parameters.disk_cache_hit_weight", "must be at most 1, not 1.5"],
    [byCost({ use_kv_events: true }), "policy.parameters.use_kv_events", "is not a known field"],
    [byCost(3), "policy.parameters", "must be an object, not 3"],
    [byCost(null), "policy.parameters", "must be an object, not null"],
  ])("%j: %s %s", (input, path, fault) => {
    const message = `${path} ${fault}`;
    expect(() => explainScenario(input)).toThrowError(
      expect.objectContaining({ code: "invalid_scenario", path, message }),
    );
  });

  it("takes the parameters of the default policy, which hold against an override", () => {
    const request = { input_tokens: 160, router_config_override: { prefill_load_scale: 3 } };
    const policy = { type: "dynamo-default-cost-fn", parameters: { prefill_load_scale: 2 } };
    expect(explainScenario(scenario({ request, policy }))).toMatchObject({ candidates: [{ cost: 20 }] });
    expect(explainScenario(scenario({ request, policy: { type: policy.type } }))).toMatchObject({
      candidates: [{ cost: 30 }],
    });
  });

  it.each([
    // spec: plugins.md §4.1, worked numbers; the idle rank beside them sets the least prefill.
    ["cold", {}, {}, 20, 0, 30],
    ["warm and busy", {}, { device_blocks: 6 }, 22, 64, 30],
    ["warm and busy, decay 2", { overlap_score_credit_decay: 2 }, { device_blocks: 6 }, 22, 64, 32 + 2 / 3],
    ["host tier", {}, { device_blocks: 2, host_blocks: 4 }, 25, 0, 30],
  ])("costs as worked out: %s", (_, config, overlap, decode_cost_blocks, active_prefill_tokens, cost) => {
    const workers = [{ worker_id: 1, overlap, decode_cost_blocks, active_prefill_tokens }, { worker_id: 2 }];
    const { candidates } = explainScenario(scenario({ config, workers })) as { candidates: Row[] };
    expectClose(candidates[0]!.cost, cost, 1e-12);
  });

  it.each([
    [0.1, [0.8808, 0.1192, 0]],
    [0.5, [0.5538, 0.3712, 0.075]],
    [1, [0.4573, 0.3744, 0.1682]],
    [5, [0.3598, 0.3457, 0.2946]],
  ])("probabilities of costs 10, 12, 20 at temperature %d (spec: plugins.md §4.2)", (router_temperature, wanted) => {
    const workers = [0, 2, 10].map((decode_cost_blocks, i) => ({ worker_id: i + 1, decode_cost_blocks }));
    const answer = explainScenario(scenario({ config: { router_temperature }, workers })) as { candidates: Row[] };
    expect(answer.candidates.map((row) => row.cost)).toEqual([10, 12, 20]);
    answer.candidates.forEach((row, i) => {
      expect(row.probability).toBeCloseTo(wanted[i]!, 4);
    });
  });

  it("takes overlap_score_weight in config as docs/configuration.md says", () => {
    const terms = (config: object) => {
      const workers = [{ worker_id: "1", overlap: { device_blocks: 4 } }];
      return (explainScenario(scenario({ config, workers })) as { candidates: { terms: object }[] }).candidates[0]!
        .terms;
    };
    expect(terms({ overlap_score_weight: 2 })).toMatchObject({ device_credit: 4, prefill_cost: 12 });
    expect(terms({ overlap_score_weight: 0 })).toMatchObject({ device_credit: 0, prefill_cost: 0 });
  });
});
