import { describe, expect, it } from "vitest";
import "../../src/kernel/inlined.js";
import { WarmrouteError } from "../../src/core/errors.js";
import type { Outcome, WorkerRole } from "../../src/core/types.js";
import { hashTokens } from "../../src/kernel/hash.js";
import type { Booking, RoutingConstraints } from "../../src/router/contract.js";
import { createRouter } from "../../src/router/create-router.js";
import { fnv1a64, poolSeed } from "../../src/scheduling/pool-seed.js";
import { golden } from "../golden.js";

type Loads = Record<string, { active_decode_blocks: number; active_prefill_tokens: number; active_requests: number }>;
interface BookingOp {
  op: "reserve" | "prefill_complete" | "output_block" | "free";
  id: string;
  worker_id: string;
  dp_rank: number;
  sequence_hashes: string[];
  isl_tokens: number;
  effective_prefill_tokens: number;
  decay_fraction?: number;
  expect?: "conflict" | "not_found";
  loads: Loads;
}

describe("golden bookings", () => {
  it.each(
    golden<{ seed: number; block_size: number; ops: BookingOp[] }[]>("bookings").map((s) => [s.seed, s] as const),
  )("stream %i", async (_, stream) => {
    const workers = new Map<string, number>();
    for (const key of Object.keys(stream.ops[0]!.loads)) {
      const [workerId, rank] = key.split("/") as [string, string];
      workers.set(workerId, Math.max(workers.get(workerId) ?? 0, Number(rank) + 1));
    }
    const router = await createRouter({
      blockSize: stream.block_size,
      workers: Array.from(workers, ([workerId, dpSize]) => ({ workerId, dpSize })),
    });
    const apply = (op: BookingOp): Booking | undefined => {
      if (op.op === "reserve") {
        return router.reserve({
          requestId: op.id,
          worker: { workerId: op.worker_id, dpRank: op.dp_rank },
          sequenceHashes: op.sequence_hashes,
          islTokens: op.isl_tokens,
          effectivePrefillTokens: op.effective_prefill_tokens,
        });
      }
      const booking = router.booking(op.id);
      if (op.op === "free") booking?.free();
      else if (op.op === "prefill_complete") booking?.prefillComplete();
      else booking?.outputBlock(op.decay_fraction);
      return booking;
    };
    for (const [i, op] of stream.ops.entries()) {
      if (op.expect === "conflict") {
        expect(() => apply(op)).toThrowError(expect.objectContaining({ code: "duplicate_request" }));
      } else expect(apply(op) === undefined, `op ${i}`).toBe(op.expect === "not_found");
      const loads: Loads = {};
      for (const row of router.loads()) {
        loads[`${row.workerId}/${row.dpRank}`] = {
          active_decode_blocks: row.activeDecodeBlocks,
          active_prefill_tokens: row.activePrefillTokens,
          active_requests: row.activeRequests,
        };
      }
      expect(loads, `after op ${i}: ${op.op} ${op.id}`).toEqual(op.loads);
    }
  });
});

type Weights = Record<string, number | boolean>;
interface Cost {
  scenario: {
    name: string;
    block_size: number;
    role: WorkerRole;
    config?: Weights;
    request: {
      input_tokens: number;
      shared_cache_ranges?: [number, number][];
      router_config_override?: Weights;
      pinned_worker?: { worker_id: string; dp_rank: number };
      allowed_worker_ids?: string[];
      routing_constraints?: { required_taints?: string[]; preferred_taints?: Record<string, number> };
    };
    workers: {
      worker_id: string;
      dp_rank: number;
      active_prefill_tokens: number;
      decode_cost_blocks: number;
      active_requests: number;
      overlap?: { device_blocks?: number; host_blocks?: number; disk_blocks?: number };
      taints?: string[];
      overloaded?: boolean;
    }[];
  };
  expected: {
    outcome: Outcome;
    candidates: { worker_id: string; dp_rank: number; cost: number; probability: number }[];
  };
}

describe("golden costs, from loads and caches that a router came to have", () => {
  const tiers = [
    ["device", "device_blocks"],
    ["host_pinned", "host_blocks"],
    ["disk", "disk_blocks"],
  ] as const;
  const camel = (weights: Weights = {}) =>
    Object.fromEntries(
      Object.entries(weights).map(([name, value]) => [name.replace(/_(.)/g, (_, c: string) => c.toUpperCase()), value]),
    );

  /** Whether requests and events can lead there: what the numbers say must be so of a real prompt and real requests. */
  function isReachable({ scenario: { block_size, config = {}, request, workers }, expected }: Cost): boolean {
    const { shared_cache_ranges = [], router_config_override = {}, input_tokens } = request;
    const shared = router_config_override.shared_cache_multiplier ?? config.shared_cache_multiplier ?? 0;
    // Nothing tells a router yet what a shared cache holds.
    if (expected.outcome === "selected" && shared_cache_ranges.length > 0 && shared !== 0) return false;
    const counted = new Set(expected.candidates.map((row) => `${row.worker_id}/${row.dp_rank}`));
    return workers.every(({ worker_id, dp_rank, overlap = {}, ...load }) => {
      if (!counted.has(`${worker_id}/${dp_rank}`)) return true;
      const blocks = tiers.reduce((sum, [, key]) => sum + (overlap[key] ?? 0), 0);
      const isLoaded = load.active_prefill_tokens + load.decode_cost_blocks > 0;
      const needsRequest = isLoaded && load.active_requests === 0 && (config.decode_active_request_weight ?? 0) !== 0;
      return blocks <= Math.floor(input_tokens / block_size) && !needsRequest;
    });
  }

  const rows = golden<Cost[]>("costs").filter(isReachable);
  it("33 of 75 can be reached", () => expect(rows).toHaveLength(33));

  it.each(rows.map((row) => [row.scenario.name, row] as const))("%s", async (_, { scenario, expected }) => {
    const { block_size: blockSize, role, config, request, workers } = scenario;
    // Without the blocks of the request itself, a rank's decode blocks are those that it has.
    const router = await createRouter({
      ...{ blockSize, seed: 1, config: { ...camel(config), routerTrackActiveBlocks: false } },
      workers: workers.map(({ worker_id: workerId, dp_rank: dpStart, taints = [] }) => ({
        workerId,
        dpStart,
        taints,
        role,
      })),
    });
    const tokens = Uint32Array.from({ length: request.input_tokens }, (_, i) => i);
    const { blockHashes, sequenceHashes: names } = hashTokens(tokens, blockSize);
    const held: Booking[] = [];
    for (const { worker_id: workerId, dp_rank: dpRank, overlap = {}, ...load } of workers) {
      const worker = { workerId, dpRank };
      let at = 0;
      for (const [tier, key] of tiers) {
        const end = Math.min(at + (overlap[key] ?? 0), names.length);
        const chain = [names.slice(at, end), blockHashes.slice(at, end)] as const;
        if (end > at) router.storeBlocks(worker, tier, at === 0 ? null : names[at - 1]!, ...chain);
        at = end;
      }
      const isLoaded = load.active_prefill_tokens + load.decode_cost_blocks > 0;
      for (let i = 0; i < Math.max(load.active_requests, isLoaded ? 1 : 0); i++) {
        const islTokens = i === 0 ? load.active_prefill_tokens : 0;
        const requestId = `${workerId}/${dpRank}/${i}`;
        const booking = router.reserve({ requestId, worker, sequenceHashes: [], islTokens });
        for (let n = 0; i === 0 && n < load.decode_cost_blocks; n++) booking.outputBlock();
        held.push(booking);
      }
    }
    router.setOverloaded(
      workers.filter((w) => w.overloaded).map((w) => ({ workerId: w.worker_id, dpRank: w.dp_rank })),
    );

    const { pinned_worker: pin, allowed_worker_ids: allowedWorkerIds, routing_constraints: taints } = request;
    const asked = {
      ...{ tokens, role, configOverride: camel(request.router_config_override) },
      ...(pin && { pinnedWorker: { workerId: pin.worker_id, dpRank: pin.dp_rank } }),
      ...(allowedWorkerIds && { allowedWorkerIds }),
      ...(taints && { routingConstraints: camel(taints as never) as RoutingConstraints }),
    };
    const { outcome, candidates } = router.probe(asked);
    expect(outcome).toBe(expected.outcome);
    expect(candidates.map((row) => [row.workerId, row.dpRank])).toEqual(
      expected.candidates.map((row) => [row.worker_id, row.dp_rank]),
    );
    const tolerance = /router_temperature|preferred_taints/.test(JSON.stringify(scenario)) ? 1e-9 : 1e-12;
    for (const [i, { cost, probability }] of expected.candidates.entries()) {
      const row = candidates[i]!;
      expect(Math.abs(row.cost! - cost)).toBeLessThanOrEqual(tolerance * Math.max(1, Math.abs(cost)));
      expect(Math.abs(row.probability! - probability)).toBeLessThanOrEqual(tolerance);
    }
    if (outcome !== "selected") {
      await expect(router.select(asked)).rejects.toMatchObject({ code: outcome });
      return;
    }
    const { worker, booking } = await router.select(asked);
    const chosen = candidates.find((row) => row.workerId === worker.workerId && row.dpRank === worker.dpRank);
    expect(chosen!.probability).toBeGreaterThan(0);
    for (const one of [...held, booking]) one.free();
    expect(router.stats().bookings.live).toBe(0);
  });
});

interface StreamOp {
  event?: { worker_id: string; dp_rank: number; data: unknown };
  query?: { block_hashes: string[]; bounds: Record<string, [number, number]> };
  remove_rank?: { worker_id: string; dp_rank: number };
}
interface IndexStream {
  seed: number;
  block_size: number;
  ranks: { worker_id: string; dp_rank: number }[];
  ops: StreamOp[];
}

describe("golden index streams, as router events", () => {
  const streams = golden<IndexStream[]>("index-streams");
  // A rank that leaves and comes back is a worker that is removed and added: so each rank gets a worker of its own.
  const own = (rank: { worker_id: string; dp_rank: number }) =>
    `${BigInt(rank.worker_id) * 16n + BigInt(rank.dp_rank)}`;

  it.each(streams.map((s) => [s.seed, s] as const))("stream %i", async (_, stream) => {
    const router = await createRouter({ blockSize: stream.block_size });
    const names = new Map<string, string>();
    for (const rank of stream.ranks) {
      router.addWorker({ workerId: own(rank) });
      names.set(own(rank), `${rank.worker_id}/${rank.dp_rank}`);
    }
    let queries = 0;
    for (const [n, op] of stream.ops.entries()) {
      if (op.event) {
        router.applyEvent({
          worker_id: own(op.event),
          storage_tier: "device",
          event: { event_id: n, dp_rank: 0, data: op.event.data },
        });
      } else if (op.remove_rank) {
        router.removeWorker(own(op.remove_rank));
        router.addWorker({ workerId: own(op.remove_rank) });
      } else {
        queries++;
        const found = router.overlap({ blockHashes: op.query!.block_hashes });
        const depth = new Map(found.map((row) => [names.get(row.workerId)!, row.deviceBlocks]));
        for (const [rank, [low, high]] of Object.entries(op.query!.bounds)) {
          expect(depth.get(rank) ?? 0, `op ${n}, rank ${rank}`).toBeGreaterThanOrEqual(low);
          expect(depth.get(rank) ?? 0, `op ${n}, rank ${rank}`).toBeLessThanOrEqual(high);
        }
      }
    }
    expect(queries).toBeGreaterThan(0);
  });
});

it("a pool's seed is the router's plus FNV-1a of its name", () => {
  const { pool_seed } = golden<{ pool_seed: { seed: string; pool: string; fnv1a64: string; pool_seed: string } }>(
    "draws",
  );
  expect(fnv1a64(pool_seed.pool).toString()).toBe(pool_seed.fnv1a64);
  expect(poolSeed(BigInt(pool_seed.seed), pool_seed.pool).toString()).toBe(pool_seed.pool_seed);
});

it("ties of a fresh pool follow the golden draws", async () => {
  const { generators } = golden<{ generators: { seed: string; ties_of_4: number[] }[] }>("draws");
  for (const { seed, ties_of_4 } of generators) {
    // The pool adds its name's hash; take it off, so that the generator starts from the raw seed.
    const raw = BigInt.asUintN(64, BigInt(seed) - fnv1a64("m/default/aggregated"));
    const workers = ["1", "2", "3", "4"].map((workerId) => ({ workerId }));
    const router = await createRouter({ model: "m", blockSize: 16, seed: raw, workers });
    for (const choice of ties_of_4) {
      const selection = await router.select({ tokens: [1, 2, 3] });
      expect(selection).toMatchObject({ tieDraw: choice, worker: { workerId: String(choice + 1) } });
      selection.booking.free();
    }
  }
});

it("errors carry a code, a status and help", () => {
  const error = new WarmrouteError("memory_budget", "m", { path: "a.b[0]" });
  expect(error).toMatchObject({ code: "memory_budget", status: 507, path: "a.b[0]" });
  expect(error.help).toContain("memoryBudgetBytes");
});
