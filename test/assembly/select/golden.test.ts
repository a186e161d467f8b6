// The golden scenarios of explain, put on the kernel's columns by hand.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type CostParams, type CostRow, DEFAULT_PARAMS, IDLE_ROW } from "../../oracle/cost.js";
import { Pool } from "./pool.js";

interface Worker {
  worker_id: string;
  dp_rank: number;
  active_prefill_tokens: number;
  decode_cost_blocks: number;
  active_requests: number;
  overlap?: { device_blocks?: number; host_blocks?: number; disk_blocks?: number };
  taints?: string[];
  overloaded?: boolean;
}

interface Golden {
  scenario: {
    name: string;
    block_size: number;
    role?: string;
    config?: Record<string, number | boolean>;
    policy?: { parameters: Record<string, number> };
    request: {
      input_tokens: number;
      shared_cache_ranges?: [number, number][];
      routing_constraints?: { required_taints?: string[]; preferred_taints?: Record<string, number> };
      router_config_override?: Record<string, number | boolean>;
      pinned_worker?: { worker_id: string; dp_rank: number };
      allowed_worker_ids?: string[];
    };
    workers: Worker[];
  };
  expected: {
    outcome: string;
    candidates?: { worker_id: string; dp_rank: number; cost?: number; probability: number }[];
  };
}

const read = (name: string): Golden[] =>
  JSON.parse(readFileSync(new URL(`../../golden/${name}`, import.meta.url), "utf8"));

const pool = new Pool();

function close(got: number, want: number, tolerance: number): void {
  expect(Math.abs(got - want)).toBeLessThanOrEqual(tolerance * Math.abs(want));
}

function sorted(workers: Worker[]): Worker[] {
  const order = (a: Worker, b: Worker) => (BigInt(a.worker_id) < BigInt(b.worker_id) ? -1 : 1);
  return [...workers].sort((a, b) => (a.worker_id === b.worker_id ? a.dp_rank - b.dp_rank : order(a, b)));
}

/** Blocks of the ranges at positions from `from` on. */
const beyond = (ranges: [number, number][], from: number) =>
  ranges.reduce((sum, [a, b]) => sum + Math.max(0, b - Math.max(a, from)), 0);

function rowOf(worker: Worker, request: Golden["scenario"]["request"]): CostRow {
  const { required_taints = [], preferred_taints = {} } = request.routing_constraints ?? {};
  const taints = worker.taints ?? [];
  const device = worker.overlap?.device_blocks ?? 0;
  return {
    ...IDLE_ROW,
    eligible:
      !worker.overloaded &&
      required_taints.every((t) => taints.includes(t)) &&
      (request.allowed_worker_ids?.includes(worker.worker_id) ?? true),
    prefill: worker.active_prefill_tokens,
    decode: worker.decode_cost_blocks,
    requests: worker.active_requests,
    device,
    host: worker.overlap?.host_blocks ?? 0,
    disk: worker.overlap?.disk_blocks ?? 0,
    shared: beyond(request.shared_cache_ranges ?? [], device),
    taint: taints.reduce((sum, t) => sum + (preferred_taints[t] ?? 0), 0),
  };
}

function paramsOf(config: Record<string, number | boolean>): CostParams {
  const number = (name: string, otherwise: number) => (config[name] as number | undefined) ?? otherwise;
  return {
    credit: number("overlap_score_credit", DEFAULT_PARAMS.credit),
    decay: number("overlap_score_credit_decay", DEFAULT_PARAMS.decay),
    prefillScale: number("prefill_load_scale", DEFAULT_PARAMS.prefillScale),
    requestWeight: number("decode_active_request_weight", DEFAULT_PARAMS.requestWeight),
    hostWeight: number("host_cache_hit_weight", DEFAULT_PARAMS.hostWeight),
    diskWeight: number("disk_cache_hit_weight", DEFAULT_PARAMS.diskWeight),
    sharedWeight: number("shared_cache_multiplier", DEFAULT_PARAMS.sharedWeight),
    temperature: number("router_temperature", DEFAULT_PARAMS.temperature),
  };
}

describe("costs.json", () => {
  test.each(read("costs.json").map((g) => [g.scenario.name, g] as const))("%s", (_, { scenario, expected }) => {
    const { request, block_size: blockSize, config = {} } = scenario;
    const workers = sorted(scenario.workers);
    const rows = workers.map((worker) => rowOf(worker, request));
    const override = request.router_config_override ?? {};
    const params = paramsOf({ ...config, ...override });
    const track = override.track_prefill_tokens ?? config.router_track_prefill_tokens ?? true;
    const pinned = request.pinned_worker;
    const costRequest = {
      promptTokens: request.input_tokens,
      blockSize,
      requestBlocks: Math.ceil(request.input_tokens / blockSize),
      sequenceBlocks: 0,
      track: Boolean(track),
      decodeRole: scenario.role === "decode",
      taints: !pinned && request.routing_constraints?.preferred_taints !== undefined,
    };
    pool.fill(rows);
    if (pinned) {
      if (expected.outcome !== "selected") return;
      const row = workers.findIndex((w) => w.worker_id === pinned.worker_id && w.dp_rank === pinned.dp_rank);
      expect(expected.candidates).toHaveLength(1);
      close(pool.scoreOne(row, costRequest, params), expected.candidates![0]!.cost!, 1e-12);
      return;
    }
    const costs = pool.score(costRequest, params);
    const probabilities = pool.probabilities(params.temperature);
    const chosen = pool.kernel.pickRow(params.temperature);
    const candidates = [...rows.keys()].filter((i) => rows[i]!.eligible);
    if (expected.outcome !== "selected") {
      expect(candidates).toHaveLength(0);
      expect(chosen).toBe(-1);
      return;
    }
    expect(candidates.map((i) => [workers[i]!.worker_id, workers[i]!.dp_rank])).toEqual(
      expected.candidates!.map((c) => [c.worker_id, c.dp_rank]),
    );
    for (const [k, i] of candidates.entries()) {
      close(costs[i]!, expected.candidates![k]!.cost!, costRequest.taints ? 1e-9 : 1e-12);
      close(probabilities[i]!, expected.candidates![k]!.probability, params.temperature > 0 ? 1e-9 : 1e-12);
    }
    expect(expected.candidates![candidates.indexOf(chosen)]!.probability).toBeGreaterThan(0);
  });
});

describe("two-tier.json", () => {
  test.each(read("two-tier.json").map((g) => [g.scenario.name, g] as const))("%s", (_, { scenario, expected }) => {
    const { request, policy } = scenario;
    const workers = sorted(scenario.workers);
    pool.fill(workers.map((worker) => rowOf(worker, request)));
    const { cache_threshold = 0.5, balance_abs_threshold = 32, balance_rel_threshold = 1.1 } = policy!.parameters;
    const requestBlocks = Math.ceil(request.input_tokens / scenario.block_size);
    pool.twoTier(requestBlocks, cache_threshold, balance_abs_threshold, balance_rel_threshold);
    expect(pool.probabilities(0)).toEqual(expected.candidates!.map((c) => c.probability));
  });
});
