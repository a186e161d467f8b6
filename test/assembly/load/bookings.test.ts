import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Random } from "../../../src/core/random.js";
import { LoadOracle, type OracleBooking } from "../../oracle/load.js";
import { chain, type Handle, LoadPool, STATUS } from "./pool.js";

interface Op {
  op: "reserve" | "free" | "prefill_complete" | "output_block";
  id: string;
  worker_id: string;
  dp_rank: number;
  sequence_hashes: string[];
  effective_prefill_tokens: number;
  decay_fraction?: number;
  expect?: string;
  loads: Record<string, { active_decode_blocks: number; active_prefill_tokens: number; active_requests: number }>;
}
const streams = JSON.parse(readFileSync(new URL("../../golden/bookings.json", import.meta.url), "utf8")) as {
  seed: number;
  ops: Op[];
}[];

const pool = new LoadPool();
const { kernel } = pool;
const decodeBlocks = (slot: number) => pool.at("decode", slot);

describe("bookings.json", () => {
  test.each(streams)("stream $seed", ({ ops }) => {
    pool.reset();
    const ranks = Object.keys(ops[0]!.loads);
    for (const [slot, rank] of ranks.entries()) {
      const [worker, dpRank] = rank.split("/");
      kernel.rankAdd(slot, BigInt(worker!), Number(dpRank));
    }
    const handles = new Map<string, Handle>();
    for (const op of ops) {
      const handle = handles.get(op.id);
      if (op.op === "reserve") {
        if (op.expect === "conflict") expect(handle).toBeDefined();
        else {
          const slot = ranks.indexOf(`${op.worker_id}/${op.dp_rank}`);
          handles.set(op.id, pool.book(slot, op.sequence_hashes.map(BigInt), 0, op.effective_prefill_tokens)!);
        }
      } else if (op.expect === "not_found") expect(handle).toBeUndefined();
      else if (op.op === "prefill_complete") expect(pool.prefillComplete(handle!)).toBe(STATUS.ok);
      else if (op.op === "output_block") expect(pool.outputBlock(handle!, op.decay_fraction)).toBe(STATUS.ok);
      else {
        expect(pool.free(handle!)).toBe(STATUS.ok);
        handles.delete(op.id);
      }
      for (const [slot, rank] of ranks.entries()) {
        const want = op.loads[rank]!;
        expect(pool.load(slot)).toEqual({
          activeDecodeBlocks: want.active_decode_blocks,
          activePrefillTokens: want.active_prefill_tokens,
          activeRequests: want.active_requests,
        });
      }
    }
  });
});

describe("spec/scheduling.md §1.3", () => {
  test("sharing by hash, also where a hash is no continuation", () => {
    pool.reset().addRanks(1);
    const r1 = pool.book(0, [1n, 2n, 3n])!;
    expect(decodeBlocks(0)).toBe(3);
    const r2 = pool.book(0, [4n])!;
    expect(decodeBlocks(0)).toBe(4);
    const r3 = pool.book(0, [1n, 2n, 3n, 4n])!;
    expect(decodeBlocks(0)).toBe(4);
    pool.free(r2);
    expect(decodeBlocks(0)).toBe(4);
    pool.free(r3);
    expect(decodeBlocks(0)).toBe(3);
    pool.free(r1);
    expect(decodeBlocks(0)).toBe(0);
    expect(kernel.runCount()).toBe(0);
  });
});

describe("spec/scheduling.md §1.5", () => {
  test("a fraction weighs what only this request references", () => {
    pool.reset().addRanks(1);
    const r1 = pool.book(0, [1n, 2n, 3n])!;
    expect(decodeBlocks(0)).toBe(3);
    pool.outputBlock(r1, 0.5);
    expect(decodeBlocks(0)).toBe(2);
    const r2 = pool.book(0, [1n, 2n])!;
    expect(decodeBlocks(0)).toBe(2);
    pool.outputBlock(r1, 0);
    expect(decodeBlocks(0)).toBe(1);
    pool.free(r1);
    expect(decodeBlocks(0)).toBe(1);
    pool.free(r2);
    expect(decodeBlocks(0)).toBe(0);
  });

  test("private prompt blocks are weighed too; without a fraction a block weighs 1", () => {
    pool.reset().addRanks(1);
    const r = pool.book(0, [], 9)!;
    expect(decodeBlocks(0)).toBe(9);
    pool.outputBlock(r, 0.5);
    expect(decodeBlocks(0)).toBe(5);
    pool.outputBlock(r);
    expect(decodeBlocks(0)).toBe(6);
  });

  test.each([0.1, 0.3, 0.7, 0.9])("five blocks of %d round half away from zero", (fraction) => {
    pool.reset().addRanks(1);
    pool.outputBlock(pool.book(0, chain(1, 4))!, fraction);
    expect(decodeBlocks(0)).toBe(Math.round(fraction * 10 * 0.5));
  });
});

describe("handles", () => {
  test("verbs of an ended booking do nothing, also when its id is used again", () => {
    pool.reset().addRanks(1);
    const old = pool.book(0, [1n], 0, 50)!;
    expect(pool.free(old)).toBe(STATUS.ok);
    const fresh = pool.book(0, [2n], 0, 70)!;
    expect(fresh.id).toBe(old.id);
    for (const verb of [pool.free(old), pool.prefillComplete(old), pool.outputBlock(old)]) {
      expect(verb).toBe(STATUS.unknownBooking);
    }
    expect(pool.load(0)).toEqual({ activeDecodeBlocks: 1, activePrefillTokens: 70, activeRequests: 1 });
  });

  test.each([0, 1, 7, 2 ** 32 - 1])("id %d that was never given out", (id) => {
    pool.reset().addRanks(1);
    expect(pool.free({ id, generation: 0 })).toBe(STATUS.unknownBooking);
  });

  test("prefill completes once", () => {
    pool.reset().addRanks(1);
    const r = pool.book(0, [1n], 0, 50)!;
    expect([pool.prefillComplete(r), pool.prefillComplete(r)]).toEqual([STATUS.ok, STATUS.ok]);
    expect(pool.at("prefill", 0)).toBe(0);
  });

  test.each([
    [Number.NaN, 0],
    [-5, 0],
    [2.75, 2],
    [Infinity, 2 ** 32],
  ])("%d prefill tokens count as %d", (given, counted) => {
    pool.reset().addRanks(1);
    pool.book(0, [], 0, given);
    expect(pool.at("prefill", 0)).toBe(counted);
  });
});

describe("against the oracle", () => {
  interface Live {
    handle: Handle;
    model: OracleBooking;
    slot: number;
  }

  /** Prompts that share prefixes in a tree. */
  function prompt(random: Random): bigint[] {
    let hashes = chain(1, random.below(30));
    for (let branch = random.below(3); branch > 0; branch--) {
      hashes = chain(2 + random.below(4), random.below(20), hashes.slice(0, random.below(hashes.length + 1)));
    }
    return hashes;
  }

  test.each([1n, 2n, 3n])("10,000 random operations end at exactly 0, seed %d", (seed) => {
    pool.reset();
    const random = new Random(seed);
    const oracle = new LoadOracle();
    const slots = [0, 5, 64, 200, 16_383];
    const present = new Set<number>();
    let live: Live[] = [];
    const ended: Handle[] = [];
    const add = (slot: number) => {
      kernel.rankAdd(slot, BigInt(slot * 7 + 1), 0);
      oracle.addRank(String(slot));
      present.add(slot);
    };
    for (const slot of slots) add(slot);
    for (let step = 0; step < 10_000; step++) {
      const slot = slots[random.below(slots.length)]!;
      const chosen = live.length ? live[random.below(live.length)] : undefined;
      switch (random.below(live.length > 60 ? 9 : 7)) {
        case 0:
        case 1:
        case 2: {
          if (!present.has(slot)) {
            add(slot);
            break;
          }
          const hashes = prompt(random);
          const privateBlocks = random.below(4) ? 0 : random.below(6);
          const tokens = random.below(5000);
          const handle = pool.book(slot, hashes, privateBlocks, tokens)!;
          live.push({ handle, slot, model: oracle.book(String(slot), hashes, privateBlocks, tokens) });
          break;
        }
        case 3:
          if (!chosen) break;
          pool.prefillComplete(chosen.handle);
          oracle.prefillComplete(chosen.model);
          break;
        case 4: {
          if (!chosen) break;
          const fraction = random.below(2) ? random.below(65) / 64 : undefined;
          pool.outputBlock(chosen.handle, fraction);
          oracle.outputBlock(chosen.model, fraction);
          break;
        }
        case 5: {
          if (ended.length) expect(pool.free(ended[random.below(ended.length)]!)).toBe(STATUS.unknownBooking);
          if (random.below(60) || !present.has(slot)) break;
          kernel.rankRemove(slot);
          oracle.removeRank(String(slot));
          present.delete(slot);
          ended.push(...live.filter((l) => l.slot === slot).map((l) => l.handle));
          live = live.filter((l) => l.slot !== slot);
          break;
        }
        default:
          if (!chosen) break;
          expect(pool.free(chosen.handle)).toBe(STATUS.ok);
          oracle.free(chosen.model);
          ended.push(chosen.handle);
          live.splice(live.indexOf(chosen), 1);
      }
      for (const s of present) expect(pool.load(s)).toEqual(oracle.load(String(s)));
      if (step % 10 === 0) {
        const asked = prompt(random);
        const here = [...present];
        expect(pool.active(asked, here)).toEqual(here.map((s) => oracle.active(String(s), asked)));
      }
    }
    for (const { handle } of live) pool.free(handle);
    for (const s of present) {
      expect(pool.load(s)).toEqual({ activeDecodeBlocks: 0, activePrefillTokens: 0, activeRequests: 0 });
    }
    expect([kernel.runCount(), kernel.bookingCount(), kernel.extentWords.value]).toEqual([0, 0, 0]);
  });

  test("hashes that are no chains are released completely", () => {
    pool.reset().addRanks(3);
    const random = new Random(8n);
    const live: Handle[] = [];
    for (let step = 0; step < 20_000; step++) {
      if (live.length < 40 && random.below(2)) {
        const hashes = Array.from({ length: random.below(8) }, () => BigInt(random.below(6)));
        live.push(pool.book(random.below(3), hashes)!);
      } else if (live.length) {
        const [handle] = live.splice(random.below(live.length), 1);
        if (random.below(3) === 0) pool.outputBlock(handle!, random.double());
        pool.free(handle!);
      }
    }
    for (const handle of live) pool.free(handle);
    for (let slot = 0; slot < 3; slot++) expect(decodeBlocks(slot)).toBe(0);
    expect([kernel.runCount(), kernel.extentWords.value]).toEqual([0, 0]);
  });
});

describe("runs", () => {
  test("join again when what cut them is gone", () => {
    pool.reset().addRanks(2);
    const long = chain(1, 100);
    const first = pool.book(0, long)!;
    const others = [10, 40, 70, 99].map((n) => pool.book(1, chain(n + 2, 5, long.slice(0, n)))!);
    expect(kernel.runCount()).toBeGreaterThan(5);
    for (const other of others) pool.free(other);
    expect(kernel.runCount()).toBe(1);
    expect(pool.active(long, [0, 1])).toEqual([100, 0]);
    pool.free(first);
    expect(kernel.runCount()).toBe(0);
  });

  test("many ranks work on one prompt", () => {
    pool.reset().addRanks(500);
    const hashes = chain(1, 64);
    const handles = Array.from({ length: 500 }, (_, slot) => pool.book((slot * 7) % 500, hashes)!);
    expect(kernel.runCount()).toBe(1);
    const slots = Array.from({ length: 500 }, (_, slot) => slot);
    expect(pool.active(hashes.slice(0, 50), slots)).toEqual(slots.map(() => 50));
    for (const handle of handles) pool.free(handle);
    expect([kernel.runCount(), kernel.extentWords.value]).toEqual([0, 0]);
  });

  test("hash 0, and addresses beyond 2 GiB", () => {
    pool.reset({ from: 2 ** 31 + 2 ** 20, budget: 1n << 24n }).addRanks(2);
    const hashes = [0n, ...chain(0, 20).slice(1)];
    const a = pool.book(0, hashes, 1, 10)!;
    const b = pool.book(1, hashes.slice(0, 7))!;
    expect(pool.active(hashes, [0, 1])).toEqual([20, 7]);
    pool.free(a);
    pool.free(b);
    expect([decodeBlocks(0), decodeBlocks(1), kernel.runCount()]).toEqual([0, 0, 0]);
  });
});

test("a booking that does not fit in memory changes nothing", () => {
  pool.reset({ budget: 2n << 20n }).addRanks(8);
  const random = new Random(4n);
  const oracle = new LoadOracle();
  for (let slot = 0; slot < 8; slot++) oracle.addRank(String(slot));
  const live: { handle: Handle; model: OracleBooking }[] = [];
  let refused = 0;
  for (let step = 0; step < 6000; step++) {
    const slot = random.below(8);
    if (random.below(10) < 7) {
      const base = chain(1 + random.below(6), 50 + random.below(400));
      const hashes = chain(10 + random.below(5000), 1 + random.below(300), base.slice(0, random.below(base.length)));
      const handle = pool.book(slot, hashes, 0, 7);
      if (handle) live.push({ handle, model: oracle.book(String(slot), hashes, 0, 7) });
      else refused++;
    } else if (live.length) {
      const [{ handle, model }] = live.splice(random.below(live.length), 1) as [(typeof live)[number]];
      pool.free(handle);
      oracle.free(model);
    }
    if (step % 20 === 0) for (let s = 0; s < 8; s++) expect(pool.load(s)).toEqual(oracle.load(String(s)));
  }
  expect(refused).toBeGreaterThan(500);
  for (const { handle } of live) pool.free(handle);
  for (let s = 0; s < 8; s++)
    expect(pool.load(s)).toEqual({ activeDecodeBlocks: 0, activePrefillTokens: 0, activeRequests: 0 });
  expect([kernel.runCount(), kernel.extentWords.value]).toEqual([0, 0]);
});
