import { describe, expect, it } from "vitest";
import "../../src/kernel/inlined.js";
import { openAiEdge } from "../../src/frontend/index.js";
import { hashTokens } from "../../src/kernel/hash.js";
import { createRouter } from "../../src/router/create-router.js";
import type { KvRouter } from "../../src/router/kv-router.js";

const open = (options: object = {}): Promise<KvRouter> =>
  createRouter({ blockSize: 16, seed: 1, workers: [{ workerId: "1" }, { workerId: "2" }], ...options });

const coded = (code: string, path?: string) => expect.objectContaining(path === undefined ? { code } : { code, path });
/** Everything a caller can see of a router's state, but for the memory it has laid out. */
const state = (r: KvRouter) =>
  JSON.stringify([r.loads(), { ...r.stats(), index: { ...r.stats().index, bytes: 0 } }, r.workers()]);

describe("tokens", () => {
  it.each([
    ["a negative", [1, -1], "tokens[1]"],
    ["a fraction", [0.5], "tokens[0]"],
    ["NaN", [1, 2, Number.NaN], "tokens[2]"],
    ["2^32", [2 ** 32], "tokens[0]"],
    ["a string", ["1"], "tokens[0]"],
    ["a hole", [1, undefined], "tokens[1]"],
    ["a bigint", [1n], "tokens[0]"],
    ["an empty array", [], "tokens"],
    ["an empty Uint32Array", new Uint32Array(0), "tokens"],
    ["nothing", undefined, "tokens"],
    ["a text", "hello", "tokens"],
    ["signed ids", new Int32Array([1]), "tokens"],
  ])("%s is invalid_tokens", async (_, tokens, path) => {
    const r = await open();
    const before = state(r);
    await expect(r.select({ tokens: tokens as never })).rejects.toThrowError(coded("invalid_tokens", path));
    expect(() => r.probe({ tokens: tokens as never })).toThrowError(coded("invalid_tokens", path));
    expect(() => hashTokens(tokens as never, 16)).toThrowError(coded("invalid_tokens", path));
    expect(state(r)).toBe(before);
  });

  it("the largest token id is fine", async () => {
    const r = await open();
    expect((await r.select({ tokens: [2 ** 32 - 1, 0] })).effectivePrefillTokens).toBe(2);
  });
});

it.each([0, -1, 1.5, 2 ** 31, Number.NaN, "16", null])("block size %s is invalid_block_size", async (blockSize) => {
  await expect(createRouter({ blockSize: blockSize as number })).rejects.toThrowError(
    coded("invalid_block_size", "blockSize"),
  );
  expect(() => hashTokens([1], blockSize as number)).toThrowError(coded("invalid_block_size"));
});

describe("options", () => {
  it.each([
    [{ maxRanks: 0 }, "maxRanks"],
    [{ maxRanks: 16385 }, "maxRanks"],
    [{ memoryBudgetBytes: 0.5 }, "memoryBudgetBytes"],
    [{ memoryBudgetBytes: 2 ** 33 }, "memoryBudgetBytes"],
    [{ config: { overlapScoreCredit: -1 } }, "config.overlapScoreCredit"],
    [{ config: { hostCacheHitWeight: 1.1 } }, "config.hostCacheHitWeight"],
    [{ config: { routerTemperature: Number.POSITIVE_INFINITY } }, "config.routerTemperature"],
    [{ config: { useKvEvents: 1 } }, "config.useKvEvents"],
    [{ config: { nonsense: 1 } }, "config.nonsense"],
    [{ seed: "x" }, "seed"],
    [{ seed: 1.5 }, "seed"],
  ])("%o is invalid_config", async (options, path) => {
    await expect(open(options)).rejects.toThrowError(coded("invalid_config", path));
  });

  it.each([0, -1])("a budget of %i names both bounds", async (memoryBudgetBytes) => {
    await expect(open({ memoryBudgetBytes })).rejects.toThrowError(/from 1 to 4294967296/);
  });

  it("a budget too small for an empty pool is memory_budget", async () => {
    await expect(open({ memoryBudgetBytes: 1024 })).rejects.toThrowError(coded("memory_budget"));
  });

  it("a request's override is checked before anything happens", async () => {
    const r = await open();
    const before = state(r);
    for (const [override, path] of [
      [{ overlapScoreCredit: Number.NaN }, "configOverride.overlapScoreCredit"],
      [{ overlapScoreCreditDecay: 1 }, "configOverride.overlapScoreCreditDecay"],
      [{ sharedCacheMultiplier: 2 }, "configOverride.sharedCacheMultiplier"],
    ] as const) {
      await expect(r.select({ tokens: [1], configOverride: override as object })).rejects.toThrowError(
        coded("invalid_config", path),
      );
    }
    expect(state(r)).toBe(before);
  });
});

describe("workers", () => {
  it.each([
    [{}, "worker.workerId"],
    [{ workerId: "x" }, "worker.workerId"],
    [{ workerId: 1.5 }, "worker.workerId"],
    [{ workerId: "18446744073709551616" }, "worker.workerId"],
    [{ workerId: "1", role: "boss" }, "worker.role"],
    [{ workerId: "1", dpSize: 0 }, "worker.dpSize"],
    [{ workerId: "1", dpStart: -1 }, "worker.dpStart"],
    [{ workerId: "1", taints: "a" }, "worker.taints"],
    [{ workerId: "1", taints: ["a", ""] }, "worker.taints[1]"],
    [{ workerId: "1", labels: { a: 1 } }, "worker.labels"],
    [{ workerId: "1", labels: ["a"] }, "worker.labels"],
    [{ workerId: "1", nonsense: 1 }, "worker.nonsense"],
    [null, "worker"],
  ])("%o is invalid_worker", async (worker, path) => {
    const r = await open();
    const before = state(r);
    expect(() => r.addWorker(worker as never)).toThrowError(coded("invalid_worker", path));
    expect(state(r)).toBe(before);
  });

  it.each(["", "nope", "file:///etc", "ftp://a", "http://", "http://a b", "http://a?x", "http://a#y", "http://u:p@a"])(
    "the url %j is invalid_worker",
    async (url) => {
      const r = await open();
      const before = state(r);
      expect(() => r.addWorker({ workerId: "1", url })).toThrowError(coded("invalid_worker", "worker.url"));
      await expect(open({ workers: [{ workerId: "1", url }] })).rejects.toThrowError(
        coded("invalid_worker", "workers[0].url"),
      );
      expect(state(r)).toBe(before);
    },
  );

  it("a refused url is not quoted: it may hold a password", async () => {
    const r = await open();
    expect(() => r.addWorker({ workerId: "3", url: "http://u:secret@a" })).toThrowError(/^(?!.*secret).*credentials/);
    expect(() => r.addWorker({ workerId: "3", url: "u:secret@a" })).toThrowError(/^(?!.*secret).*must begin with/);
  });

  it("signed ids are re-read as u64", async () => {
    const r = await open({ workers: [] });
    expect(r.addWorker({ workerId: -2 }).workerId).toBe("18446744073709551614");
    expect(r.removeWorker(-2n)).toBe(true);
  });

  it("more ranks than slots is too_many_ranks, all or nothing", async () => {
    const r = await open({ maxRanks: 4 });
    const before = state(r);
    expect(() => r.addWorker({ workerId: "3", dpSize: 3 })).toThrowError(coded("too_many_ranks"));
    expect(state(r)).toBe(before);
    r.addWorker({ workerId: "3", dpSize: 2 });
    expect(r.loads()).toHaveLength(4);
    r.addWorker({ workerId: "3", dpSize: 1 });
    expect(r.loads()).toHaveLength(3);
  });

  it("an update that fails leaves the worker as it was", async () => {
    const r = await open({ memoryBudgetBytes: 4 * 2 ** 20 });
    await r.select({ requestId: "a", tokens: [1], pinnedWorker: { workerId: "1" } });
    const before = state(r);
    for (let i = 0, go = true; go; i++) {
      const chain = BigUint64Array.from({ length: 100 }, (_, j) => BigInt(i * 1000 + j + 1));
      go = r.storeBlocks({ workerId: "2", dpRank: 0 }, "device", null, chain, chain).applied;
    }
    expect(() => r.addWorker({ workerId: "1", dpSize: 16000 })).toThrowError(coded("memory_budget"));
    expect(() => r.addWorker({ workerId: "9", routingGroup: "g", dpSize: 16385 })).toThrowError();
    r.applyEvent({ worker_id: "2", event: { data: "cleared" } });
    expect(JSON.parse(state(r))[0]).toEqual(JSON.parse(before)[0]);
    expect(r.stats().index.budgetBytes).toBe(4 * 2 ** 20);
    expect(r.booking("a")).toBeDefined();
  });

  it("an update keeps what its ranks hold, unless the process is another", async () => {
    const r = await open();
    const { blockHashes } = hashTokens([...Array(32).keys()], 16);
    r.storeBlocks({ workerId: "1", dpRank: 0 }, "device", null, blockHashes, blockHashes);
    await r.select({ requestId: "a", tokens: [1], pinnedWorker: { workerId: "1" } });
    r.addWorker({ workerId: "1", url: "http://new", dpSize: 2 });
    expect(r.stats()).toMatchObject({ index: { blocks: 2 }, bookings: { live: 1 } });
    expect(await r.select({ tokens: [...Array(32).keys()] })).toMatchObject({ url: "http://new" });
    r.addWorker({ workerId: "1", incarnation: "b" });
    expect(r.stats()).toMatchObject({ index: { blocks: 0 }, bookings: { live: 0 } });
    r.addWorker({ workerId: "1", routingGroup: "g" });
    expect(r.loads()).toHaveLength(2);
    expect(await r.select({ tokens: [1], routingGroup: "g" })).toMatchObject({ worker: { workerId: "1" } });
    await expect(
      r
        .select({ requestId: "x", tokens: [1] })
        .then(() => r.select({ requestId: "x", tokens: [1], routingGroup: "g" })),
    ).rejects.toThrowError(coded("duplicate_request"));
  });

  it("reaches slot 16,383", async () => {
    const r = await open({ workers: [{ workerId: "5", dpSize: 16384 }] });
    const last = { workerId: "5", dpRank: 16383 };
    const { blockHashes } = hashTokens([...Array(32).keys()], 16);
    expect(r.storeBlocks(last, "device", null, blockHashes, blockHashes)).toEqual({ applied: true });
    const selection = await r.select({ tokens: [...Array(32).keys()] });
    expect(selection).toMatchObject({ worker: last, overlap: { deviceBlocks: 2 } });
    expect(() => r.addWorker({ workerId: "6" })).toThrowError(coded("too_many_ranks"));
  });
});

describe("events", () => {
  const stored = { stored: { parent_hash: null, blocks: [{ block_hash: 1, tokens_hash: 2 }] } };
  it.each([
    [{}, "event.event"],
    [{ worker_id: "1", event: {} }, "event.data"],
    [{ event: { data: stored } }, "worker_id"],
    [{ worker_id: "1", storage_tier: "gpu", event: { data: stored } }, "storage_tier"],
    [{ worker_id: "1", event: { dp_rank: -1, data: stored } }, "event.dp_rank"],
    [
      { worker_id: "1", event: { data: { stored: { blocks: [{ block_hash: 1.5, tokens_hash: 1 }] } } } },
      "event.data.stored.blocks[0].block_hash",
    ],
    [{ worker_id: "1", event: { data: { removed: { block_hashes: ["a"] } } } }, "event.data.removed.block_hashes[0]"],
    ["cleared", "event"],
    [{ worker_id: "1", event: { data: { ...stored, removed: { block_hashes: [1] } } } }, "event.data"],
  ])("%o is invalid_event", async (event, path) => {
    const r = await open();
    expect(() => r.applyEvent(event)).toThrowError(coded("invalid_event", path));
  });

  it("says why a well-formed event was not applied, and counts it", async () => {
    const r = await open();
    const event = (worker_id: string, data: unknown, dp_rank = 0) =>
      r.applyEvent({ worker_id, event: { dp_rank, data } });
    const block = (block_hash: number) => ({ block_hash, tokens_hash: block_hash });
    expect(event("9", stored)).toEqual({ applied: false, reason: "unknown_worker" });
    expect(event("1", stored, 1)).toEqual({ applied: false, reason: "unknown_rank" });
    expect(event("1", { stored: { parent_hash: 7, blocks: [block(8)] } })).toEqual({
      applied: false,
      reason: "orphan",
    });
    expect(event("1", { stored: { parent_hash: null, blocks: [block(8), block(8)] } })).toEqual({
      applied: false,
      reason: "invalid_sequence",
    });
    expect(r.stats().index).toMatchObject({ blocks: 0, orphans: 1, refused: 3 });
    expect(event("1", { removed: { block_hashes: [5] } })).toEqual({ applied: true });
    expect(event("1", "cleared")).toEqual({ applied: true });
  });

  it("useKvEvents: false refuses every event and counts it", async () => {
    const r = await open({ config: { useKvEvents: false } });
    const off = { applied: false, reason: "events_off" };
    const at = { workerId: "1", dpRank: 0 };
    const one = BigUint64Array.of(1n);
    for (const data of [stored, { removed: { block_hashes: [1] } }, "cleared"]) {
      expect(r.applyEvent({ worker_id: "1", event: { data } })).toEqual(off);
    }
    expect(r.storeBlocks(at, "device", null, one, one)).toEqual(off);
    expect(r.removeBlocks(at, "device", one)).toBe(0);
    expect(r.stats().index).toMatchObject({ blocks: 0, refused: 5 });
    expect(() => r.applyEvent({ worker_id: "1", event: {} })).toThrowError(coded("invalid_event", "event.data"));
  });

  it("hashes are signed or unsigned", async () => {
    const r = await open();
    const blocks = [{ block_hash: -2, tokens_hash: "-3" }];
    expect(r.applyEvent({ worker_id: "1", event: { data: { stored: { parent_hash: null, blocks } } } }).applied).toBe(
      true,
    );
    expect(r.overlap({ blockHashes: ["18446744073709551613"] })).toMatchObject([{ workerId: "1", deviceBlocks: 1 }]);
    r.applyEvent({ worker_id: "1", event: { data: { removed: { block_hashes: ["18446744073709551614"] } } } });
    expect(r.stats().index.blocks).toBe(0);
  });
});

describe("the memory budget", () => {
  it("refuses a store whole, counts it, and goes on after removals", async () => {
    const r = await open({ memoryBudgetBytes: 8 * 2 ** 20 });
    const at = { workerId: "1", dpRank: 0 };
    const chain = (i: number) => BigUint64Array.from({ length: 500 }, (_, j) => BigInt(i * 1000 + j + 1));
    let i = 0;
    let refusal: string | undefined;
    for (; refusal === undefined && i < 10_000; i++) {
      const before = r.stats().index.blocks;
      refusal = r.storeBlocks(at, "device", null, chain(i), chain(i)).reason;
      if (refusal !== undefined) expect(r.stats().index.blocks).toBe(before);
    }
    expect(refusal).toBe("memory_budget");
    expect(r.stats().index).toMatchObject({ refused: 1 });
    expect(r.stats().index.bytes).toBeLessThanOrEqual(8 * 2 ** 20);
    expect(r.overlap({ blockHashes: chain(0) })).toMatchObject([{ deviceBlocks: 500 }]);
    expect(r.overlap({ blockHashes: chain(i - 1) })).toEqual([]);
    for (let k = 0; k < 8; k++) expect(r.removeBlocks(at, "device", chain(k))).toBe(500);
    expect(r.storeBlocks(at, "device", null, chain(i - 1), chain(i - 1))).toEqual({ applied: true });
  });

  it("a full index still removes lists of any length, and still takes requests", async () => {
    const r = await open({ memoryBudgetBytes: 4 * 2 ** 20 });
    const at = { workerId: "1", dpRank: 0 };
    const all: bigint[] = [];
    for (let i = 0; i < 100_000; i++) {
      const chain = BigUint64Array.of(BigInt(i * 2 + 1), BigInt(i * 2 + 2));
      if (!r.storeBlocks(at, "device", null, chain, chain).applied) break;
      all.push(...chain);
    }
    expect(r.stats().index).toMatchObject({ blocks: all.length, refused: 1 });
    for (let i = 0; i < 50; i++) await r.select({ tokens: Uint32Array.from({ length: 64 }, (_, j) => i * 1000 + j) });
    expect(r.applyEvent({ worker_id: "1", event: { data: { removed: { block_hashes: all } } } })).toEqual({
      applied: true,
    });
    expect(r.stats().index.blocks).toBe(0);
  });

  it("refuses a booking whole", async () => {
    const r = await open({ memoryBudgetBytes: 4 * 2 ** 20 });
    let i = 0;
    await expect(
      (async () => {
        for (; i < 10_000; i++)
          await r.select({ tokens: Uint32Array.from({ length: 8192 }, (_, j) => i * 10_000 + j) });
      })(),
    ).rejects.toThrowError(coded("memory_budget"));
    expect(r.loads().reduce((n, row) => n + row.activeRequests, 0)).toBe(i);
    expect(r.stats().bookings.live).toBe(i);
  });
});

describe("bookings", () => {
  it("refuses what it cannot book and changes nothing", async () => {
    const r = await open();
    const reserve = (change: object) =>
      r.reserve({ requestId: "a", worker: { workerId: "1" }, sequenceHashes: [1n], islTokens: 20, ...change } as never);
    const before = state(r);
    expect(() => reserve({ worker: { workerId: "7" } })).toThrowError(coded("unknown_worker"));
    expect(() => reserve({ worker: { workerId: "1", dpRank: 1 } })).toThrowError(coded("unknown_worker"));
    expect(() => reserve({ islTokens: -1 })).toThrowError(coded("invalid_request", "islTokens"));
    expect(() => reserve({ effectivePrefillTokens: 21 })).toThrowError(
      coded("invalid_request", "effectivePrefillTokens"),
    );
    expect(() => reserve({ sequenceHashes: ["x"] })).toThrowError(coded("invalid_request", "sequenceHashes[0]"));
    expect(state(r)).toBe(before);
    const booking = reserve({});
    expect(() => reserve({})).toThrowError(coded("duplicate_request"));
    expect(() => booking.outputBlock(1.5)).toThrowError(coded("invalid_request", "decayFraction"));
    booking.free();
    booking.free();
    booking.outputBlock();
    expect(r.loads()[0]).toMatchObject({ activeRequests: 0, activeDecodeBlocks: 0, activePrefillTokens: 0 });
  });

  it("a late verb never touches the load of a rank that came back, or of an id used again", async () => {
    const r = await open({ workers: [{ workerId: "1" }] });
    const old = (await r.select({ requestId: "a", tokens: Array(64).fill(1) })).booking;
    r.removeWorker("1");
    r.addWorker({ workerId: "1" });
    const next = (await r.select({ requestId: "a", tokens: Array(64).fill(1) })).booking;
    old.free();
    old.prefillComplete();
    expect(r.loads()).toMatchObject([{ activeRequests: 1, activeDecodeBlocks: 4, activePrefillTokens: 64 }]);
    next.free();
    expect(r.loads()).toMatchObject([{ activeRequests: 0, activeDecodeBlocks: 0, activePrefillTokens: 0 }]);
  });
});

describe("shapes", () => {
  it.each([
    [null, "request"],
    [{ tokens: [1], requestId: 5 }, "requestId"],
    [{ tokens: [1], requestId: "" }, "requestId"],
    [{ tokens: [1], loraName: 5 }, "loraName"],
    [{ tokens: [1], allowedWorkerIds: "12" }, "allowedWorkerIds"],
    [{ tokens: [1], allowedWorkerIds: ["x"] }, "allowedWorkerIds[0]"],
    [{ tokens: [1], pinnedWorker: "1" }, "pinnedWorker"],
    [{ tokens: [1], explain: 1 }, "explain"],
    [{ tokens: [1], sessionID: "s" }, "sessionID"],
    [{ tokens: [1], sessionId: "" }, "sessionId"],
    [{ tokens: [1], sessionContext: {} }, "sessionContext"],
    [{ tokens: [1], sessionContext: { id: "s" } }, "sessionContext.id"],
    [{ tokens: [1], sessionContext: { sessionId: "s", inputTrigger: "bell" } }, "sessionContext.inputTrigger"],
    [{ tokens: [1], role: "all" }, "role"],
    [{ tokens: [1], priorityJump: Number.NaN }, "priorityJump"],
    [{ tokens: [1], strictPriority: 1.5 }, "strictPriority"],
    [{ tokens: [1], affinityTarget: { workerId: "x" } }, "affinityTarget.workerId"],
    [{ tokens: [1], policyClass: "" }, "policyClass"],
    [{ tokens: [1], lifecycle: 1 }, "lifecycle"],
    [{ tokens: [1], expectedOutputTokens: -1 }, "expectedOutputTokens"],
    [{ tokens: [1], routingConstraints: { required_taints: [] } }, "routingConstraints.required_taints"],
    [{ tokens: [1], routingConstraints: { requiredTaints: 5 } }, "routingConstraints.requiredTaints"],
    [{ tokens: [1], routingConstraints: { preferredTaints: { a: "x" } } }, "routingConstraints.preferredTaints.a"],
  ])("select(%o) is invalid_request", async (request, path) => {
    const r = await open();
    const before = state(r);
    await expect(r.select(request as never)).rejects.toThrowError(coded("invalid_request", path));
    expect(state(r)).toBe(before);
  });

  it.each([
    [null, "options"],
    [{ workers: 5 }, "workers"],
    [{ model: 5 }, "model"],
    [{ plugins: {} }, "plugins"],
    [{ attributes: {} }, "attributes"],
    [{ classifyTimeoutMs: 0 }, "classifyTimeoutMs"],
    [{ maxPending: 1.5 }, "maxPending"],
    [{ allowPriority: 1 }, "allowPriority"],
    [{ clock: {} }, "clock.now"],
    [{ clock: { now: 5 } }, "clock.now"],
    [{ tokenizer: {} }, "tokenizer.encode"],
    [{ log: { warn() {} } }, "log.debug"],
    [{ fetch: "fetch" }, "fetch"],
    [{ blocksize: 16 }, "blocksize"],
    [{ blockNames: "x" }, "blockNames"],
  ])("createRouter(%o) is invalid_config", async (options, path) => {
    await expect(createRouter(options as never)).rejects.toThrowError(coded("invalid_config", path));
  });

  it.each([
    [undefined, "tokens"],
    [{}, "tokens"],
    ["abc", "tokens"],
    [{ tokens: [1], blockHashes: ["1"] }, "tokens"],
    [{ tokens: [1], lora: "a" }, "lora"],
    [{ tokens: [1], loraName: 5 }, "loraName"],
    [{ blockHashes: "12" }, "blockHashes"],
    [{ blockHashes: new DataView(new ArrayBuffer(8)) }, "blockHashes"],
    [{ blockHashes: ["1"], loraName: "a" }, "loraName"],
  ])("overlap(%o) is invalid_request", async (prompt, path) => {
    const r = await open();
    expect(() => r.overlap(prompt as never)).toThrowError(coded("invalid_request", path));
  });

  it.each([
    [null, "options"],
    [{ foo: 5 }, "foo"],
    [{ signal: 5 }, "signal"],
    [{ signal: new AbortController() }, "signal"],
    [{ headers: 5 }, "headers"],
    [{ headers: { "no header": "x" } }, "headers"],
  ])("the options %o of a call are invalid_request", async (options, path) => {
    const r = await createRouter(
      { workers: [{ workerId: "1", url: "http://w" }], attributes: () => ({}) },
      { entryPoint: "createRouter", edge: openAiEdge },
    );
    const refused = coded("invalid_request", path);
    await expect(r.select({ tokens: [1] }, options as never)).rejects.toThrowError(refused);
    await expect(r.route({ prompt: "a" }, options as never)).rejects.toThrowError(refused);
    await expect(r.generate({ prompt: "a" }, options as never).next()).rejects.toThrowError(refused);
    expect(r.stats().bookings.live).toBe(0);
    if (path === "headers") return;
    const selection = await r.select({ tokens: [1] });
    await expect(selection.retry(options as never)).rejects.toThrowError(refused);
    expect(r.booking(selection.requestId)).toMatchObject({ live: true, worker: selection.worker });
  });

  it.each([undefined, null, "ok", {}])("track(%o) is invalid_request and frees the booking", async (response) => {
    const r = await open();
    for (const given of [response, Promise.resolve(response)]) {
      const { track } = await r.select({ tokens: [1] }).then((s) => ({ track: () => s.track(given as never) }));
      await expect(track()).rejects.toThrowError(coded("invalid_request", "response"));
    }
    expect(r.stats().bookings.live).toBe(0);
  });

  it("reserve and storeBlocks name what is wrong", async () => {
    const r = await open();
    const good = { requestId: "a", worker: { workerId: "1" }, sequenceHashes: [1n], islTokens: 20 };
    for (const key of Object.keys(good)) {
      expect(() => r.reserve({ ...good, [key]: undefined } as never)).toThrowError(coded("invalid_request", key));
    }
    const at = { workerId: "1", dpRank: 0 };
    const [one, two] = [BigUint64Array.of(1n), BigUint64Array.of(1n, 2n)];
    const rows: [unknown[], string][] = [
      [[undefined, "device", null, one, one], "at"],
      [[at, "gpu", null, one, one], "tier"],
      [[at, "device", "1", one, one], "parent"],
      [[at, "device", null, ["1"], one], "names"],
      [[at, "device", null, one, [1n]], "localHashes"],
    ];
    for (const [args, path] of rows) {
      expect(() => r.storeBlocks(...(args as [never, never, never, never, never]))).toThrowError(
        coded("invalid_event", path),
      );
    }
    expect(() => r.removeBlocks(at, "gpu" as never, one)).toThrowError(coded("invalid_event", "tier"));
    expect(() => r.removeBlocks(at, "device", [1n] as never)).toThrowError(coded("invalid_event", "names"));
    expect(() => r.storeBlocks(at, "device", null, two, one)).toThrowError(coded("invalid_event", "names"));
  });

  it("snapshot and restore name an unknown part", async () => {
    const r = await open();
    expect(() => r.snapshot({ include: ["bogus"] as never })).toThrowError(coded("invalid_request", "include"));
    expect(() => r.snapshot({ include: ["index", "index"] })).toThrowError(coded("invalid_request", "include"));
    expect(() => r.snapshot(null as never)).toThrowError(coded("invalid_request", "options"));
    expect(() => r.restore(r.snapshot(), { parts: ["x"] as never })).toThrowError(coded("invalid_request", "parts"));
    expect(() => r.restore(r.snapshot().buffer as never)).toThrowError(coded("snapshot_magic"));
  });

  it("a list of workers with one twice is refused", async () => {
    const workers = [{ workerId: "1" }, { workerId: "01" }];
    await expect(open({ workers })).rejects.toThrowError(coded("invalid_worker", "workers[1].workerId"));
  });

  it("generated tokens are counted whole, and in one step however many", async () => {
    const r = await open({ config: { routerTrackOutputBlocks: true }, workers: [{ workerId: "1" }] });
    const { booking } = await r.select({ tokens: Array(20).fill(1), expectedOutputTokens: 64 });
    for (const n of ["3", 2n, -1, 0.5, Number.NaN, 1e300, undefined]) {
      expect(() => booking.tokens(n as number), String(n)).toThrowError(coded("invalid_request", "tokens"));
    }
    booking.tokens(11);
    expect(r.loads()).toMatchObject([{ activeDecodeBlocks: 1 }]);
    booking.tokens(1);
    expect(r.loads()).toMatchObject([{ activeDecodeBlocks: 2 }]); // 2 blocks × (1 − 12/64), rounded
    booking.tokens(36);
    expect(r.loads()).toMatchObject([{ activeDecodeBlocks: 1 }]); // 4 blocks × (1 − 48/64)
    booking.tokens(2 ** 32 - 1);
    expect(r.loads()).toMatchObject([{ activeDecodeBlocks: 0 }]);
    booking.free();
    expect(r.loads()).toMatchObject([{ activeDecodeBlocks: 0, activeRequests: 0 }]);
  });

  it("refused events are counted, whoever they are for", async () => {
    const off = { overlapScoreCredit: 0, hostCacheHitWeight: 0, diskCacheHitWeight: 0, sharedCacheMultiplier: 0 };
    const r = await open({ config: off });
    const one = BigUint64Array.of(1n);
    for (const workerId of ["1", "9"]) r.storeBlocks({ workerId, dpRank: 0 }, "device", null, one, one);
    r.applyEvent({ worker_id: "1", event: { dp_rank: 4, data: "cleared" } });
    expect(r.stats().index.refused).toBe(3);
  });
});

describe("outcomes", () => {
  it("names why no worker was taken", async () => {
    const r = await open({ workers: [{ workerId: "1", taints: ["a"] }, { workerId: "2" }] });
    const tokens = [1];
    const select = (change: object) => r.select({ tokens, ...change });
    await expect(select({ allowedWorkerIds: ["9"] })).rejects.toThrowError(coded("no_endpoints"));
    await expect(select({ routingConstraints: { requiredTaints: ["b"] } })).rejects.toThrowError(coded("no_endpoints"));
    await expect(select({ pinnedWorker: { workerId: "1" }, allowedWorkerIds: ["2"] })).rejects.toThrowError(
      coded("pinned_worker_not_allowed"),
    );
    expect(r.probe({ tokens, routingGroup: "other" }).outcome).toBe("no_endpoints");
    await expect(select({ routingGroup: "other" })).rejects.toThrowError(coded("no_endpoints", "routingGroup"));
    expect(await select({ allowedWorkerIds: [2] })).toMatchObject({
      worker: { workerId: "2" },
      reason: "only_candidate",
    });
    expect(await select({ routingConstraints: { requiredTaints: ["a"] } })).toMatchObject({
      worker: { workerId: "1" },
    });
    expect(await select({ routingConstraints: { preferredTaints: { a: 1 } } })).toMatchObject({
      worker: { workerId: "1" },
      reason: "cost",
    });
    expect(r.probe({ tokens, pinnedWorker: { workerId: "2" } })).toMatchObject({
      selected: { workerId: "2" },
      candidates: [{ probability: 1 }],
      excluded: [{ workerId: "1", reason: "not_pinned" }],
    });
    r.removeWorker("1");
    r.removeWorker("2");
    await expect(select({})).rejects.toThrowError(coded("no_endpoints"));
    r.addWorker({ workerId: "3" });
    expect(await select({})).toMatchObject({ worker: { workerId: "3" } });
  });

  it("a probe books nothing and leaves the generator unmoved", async () => {
    const [a, b] = await Promise.all([open(), open()]);
    const before = state(a);
    for (let i = 0; i < 10; i++) a.probe({ tokens: [1, 2] });
    expect(state(a)).toBe(before);
    for (let i = 0; i < 20; i++) {
      const [x, y] = await Promise.all([a.select({ tokens: [1, 2] }), b.select({ tokens: [1, 2] })]);
      expect(x.worker).toEqual(y.worker);
    }
  });

  it("a closed router refuses, and has freed its bookings", async () => {
    const r = await open();
    const { booking } = await r.select({ tokens: [1] });
    await r.close();
    await expect(r.select({ tokens: [1] })).rejects.toThrowError(coded("shutting_down"));
    expect(() => booking.free()).not.toThrow();
    expect(r.loads().every((row) => row.activeRequests === 0)).toBe(true);
  });
});
