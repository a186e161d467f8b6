import { describe, expect, it } from "vitest";
import "../../src/kernel/inlined.js";
import { WarmrouteError } from "../../src/core/errors.js";
import type { Booking } from "../../src/router/contract.js";
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
