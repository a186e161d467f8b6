// Faults that users met in other routers, by id. Block 16 tokens, equal capacity, no queue.
import { describe, expect, it } from "vitest";
import "../../src/kernel/inlined.js";
import { hashTokens } from "../../src/kernel/hash.js";
import { createRouter } from "../../src/router/create-router.js";
import type { KvRouter } from "../../src/router/kv-router.js";
import { builtIn, corePool } from "../scheduling/pool.js";

const SIZE = 16;

/** A prompt of blocks, each named by a letter or number: equal names are equal blocks. */
function prompt(blocks: readonly (string | number)[]): Uint32Array {
  const tokens = new Uint32Array(blocks.length * SIZE);
  blocks.forEach((name, i) => {
    const base = typeof name === "number" ? 1_000_000 + name * SIZE : name.charCodeAt(0) * SIZE;
    for (let j = 0; j < SIZE; j++) tokens[i * SIZE + j] = base + j;
  });
  return tokens;
}

const numbers = (n: number, from = 0): number[] => Array.from({ length: n }, (_, i) => from + i);

let nextName = 1n;
/** Tells the router that a worker's cache holds a chain of blocks. */
function holds(router: KvRouter, workerId: string, tokens: Uint32Array, blockSize = SIZE): void {
  const locals = hashTokens(tokens, blockSize).blockHashes;
  const names = BigUint64Array.from(locals, () => nextName++);
  expect(router.storeBlocks({ workerId, dpRank: 0 }, "device", null, names, locals)).toEqual({ applied: true });
}

/** Puts `n` requests in flight on a worker, of one block each unless told. */
function load(router: KvRouter, workerId: string, n: number, tokens = SIZE): void {
  for (let i = 0; i < n; i++) {
    const blocks = Math.floor(tokens / SIZE);
    const sequenceHashes = BigUint64Array.from({ length: blocks }, () => nextName++ * 2n ** 40n);
    const requestId = `load-${nextName++}`;
    router.reserve({ requestId, worker: { workerId, dpRank: 0 }, sequenceHashes, islTokens: tokens });
  }
}

const router = (ids: readonly string[], seed = "1") =>
  createRouter({ blockSize: SIZE, seed, workers: ids.map((workerId) => ({ workerId })) });

const chosen = async (r: KvRouter, tokens: Uint32Array) => (await r.select({ tokens })).worker.workerId;

describe("what counts as a prefix", () => {
  it("C01: only an unbroken chain from block 0 matches", async () => {
    const r = await router(["1", "2"]);
    holds(r, "1", prompt(["x"]));
    holds(r, "2", prompt(["y"]));
    expect(r.overlap({ tokens: prompt(["y", "x"]) })).toEqual([
      { workerId: "2", dpRank: 0, deviceBlocks: 1, hostBlocks: 0, diskBlocks: 0 },
    ]);
    expect(await chosen(r, prompt(["y", "x"]))).toBe("2");
  });

  it("C02: saved work counts, not the ratio of a tiny prompt", async () => {
    const tiny = await router(["1", "2"]);
    holds(tiny, "1", prompt(["a"]));
    load(tiny, "1", 8);
    expect(await chosen(tiny, prompt(["a"]))).toBe("2");

    const big = await router(["1", "2"]);
    holds(big, "1", prompt(numbers(200)));
    load(big, "1", 1);
    expect(await chosen(big, prompt(numbers(400)))).toBe("1");
  });

  it("C04: one unit everywhere, exact also for text beyond ASCII", async () => {
    const r = await createRouter({ blockSize: 1, seed: 1, workers: [{ workerId: "1" }] });
    const bytes = (text: string) => Uint32Array.from(new TextEncoder().encode(text));
    const stored = bytes("héllo wörld🙂x");
    const asked = bytes("héllo wörld🙃x");
    expect(asked.length).toBe(18);
    holds(r, "1", stored, 1);
    expect(r.overlap({ tokens: asked })).toMatchObject([{ deviceBlocks: 16 }]);
    expect(await r.select({ tokens: asked })).toMatchObject({ cachedTokens: 16, effectivePrefillTokens: 2 });
  });
});

describe("staleness", () => {
  it("C15: a removed worker takes its blocks along and nobody else's", async () => {
    const r = await router(["1", "2"]);
    holds(r, "1", prompt(["a"]));
    holds(r, "2", prompt(["a"]));
    expect(r.removeWorker("1")).toBe(true);
    expect(r.overlap({ tokens: prompt(["a"]) })).toMatchObject([{ workerId: "2", deviceBlocks: 1 }]);
    expect(await chosen(r, prompt(["a"]))).toBe("2");
    r.addWorker({ workerId: "1" });
    expect(r.overlap({ tokens: prompt(["a"]) })).toHaveLength(1);
    expect(r.stats().index.blocks).toBe(1);
  });
});

describe("load accounting", () => {
  it.each(["dynamo-default-cost-fn", "dynamo-two-tier-cost-fn"])(
    "C28: load counts under every built-in policy: %s",
    (type) => {
      const core = corePool({ policy: builtIn(type), workers: [{ workerId: "1" }, { workerId: "2" }] });
      for (let i = 0; i < 10; i++) core.reserve(`r${i}`, core.ranks.get("1", 0)!, [BigInt(i)], SIZE, SIZE);
      for (let i = 0; i < 5; i++) expect(core.select({ tokens: prompt([i]) }).worker.workerId).toBe("2");
    },
  );

  it("C29: load is booked at the decision, so a burst spreads", async () => {
    const r = await router(["1", "2", "3", "4"]);
    await Promise.all(numbers(8).map((i) => r.select({ tokens: prompt(numbers(4, 10 * i)) })));
    expect(r.loads().map((row) => row.activeRequests)).toEqual([2, 2, 2, 2]);
  });

  it("C30: one huge prompt outweighs several small ones", async () => {
    const r = await router(["1", "2"]);
    load(r, "1", 1, 500_000);
    load(r, "2", 4, 1_000);
    expect(await chosen(r, prompt(["c"]))).toBe("2");
  });
});

describe("scores, ties, hot spots", () => {
  it("C32: ties are drawn evenly, and replayably", async () => {
    const draw = async (seed: number) => {
      const r = await router(["1", "2", "3", "4"], String(seed));
      const tokens = prompt(["a"]);
      const picks: string[] = [];
      for (let i = 0; i < 4000; i++) {
        const selection = await r.select({ tokens });
        picks.push(selection.worker.workerId);
        selection.booking.free();
      }
      return picks;
    };
    for (let seed = 1; seed <= 20; seed++) {
      const picks = await draw(seed);
      for (const id of ["1", "2", "3", "4"]) {
        expect(Math.abs(picks.filter((p) => p === id).length - 1000)).toBeLessThanOrEqual(137);
      }
      expect(await draw(seed)).toEqual(picks);
    }
  });

  it("C34: all-zero, single and empty sets give finite costs or a typed outcome", async () => {
    const idle = await router(["1", "2", "3"]);
    const { candidates } = idle.probe({ tokens: prompt(["a"]) });
    expect(candidates.map((c) => c.cost)).toEqual([2, 2, 2]);
    for (const c of candidates) expect(c.probability).toBeCloseTo(1 / 3, 15);
    for (const routerTemperature of [0, 0.5]) {
      const one = (await router(["1"])).probe({ tokens: prompt(["a"]), configOverride: { routerTemperature } });
      expect(one).toMatchObject({ outcome: "selected", candidates: [{ cost: 2, probability: 1 }] });
    }
    const none = await router([]);
    expect(none.probe({ tokens: prompt(["a"]) })).toEqual({
      outcome: "no_endpoints",
      selected: null,
      candidates: [],
      excluded: [],
    });
    await expect(none.select({ tokens: prompt(["a"]) })).rejects.toMatchObject({ code: "no_endpoints", status: 503 });
  });

  it("C36: one request more in flight does not beat a large prefix", async () => {
    const r = await router(["1", "2"]);
    const tokens = prompt(numbers(512));
    holds(r, "1", tokens);
    load(r, "1", 1);
    expect(await chosen(r, tokens)).toBe("1");
  });

  it("C37: a cold prompt goes to the least loaded, not to the smallest cache", async () => {
    const r = await router(["1", "2"]);
    holds(r, "1", prompt(["z"]));
    holds(r, "2", prompt(numbers(1000, 5000)));
    load(r, "1", 50);
    expect(await chosen(r, prompt(["c"]))).toBe("2");
  });

  it("C38: a worker with the prefix keeps its advantage as it fills up, and loses it by degrees", async () => {
    const r = await router(["1", "2", "3"]);
    const tokens = prompt(numbers(8));
    holds(r, "3", tokens);
    load(r, "1", 10);
    load(r, "2", 2);
    load(r, "3", 3);
    expect(await chosen(r, tokens)).toBe("3");

    const filling = await router(["1", "2", "3"]);
    holds(filling, "3", tokens);
    load(filling, "1", 10);
    load(filling, "2", 2);
    const costs: number[] = [];
    const choices: (string | undefined)[] = [];
    for (let busy = 0; busy <= 12; busy++) {
      const { candidates, selected } = filling.probe({ tokens });
      costs.push(candidates[2]!.cost!);
      choices.push(selected?.workerId);
      load(filling, "3", 1);
    }
    // A request is one block to prefill and one to decode; the prefix is worth 8 blocks, so 4 requests beyond the other's 2.
    expect(costs).toEqual(costs.map((_, busy) => 8 + 2 * busy));
    expect(choices.slice(0, 6)).toEqual(Array(6).fill("3"));
    expect(choices.slice(7)).toEqual(Array(6).fill("2"));
  });
});
