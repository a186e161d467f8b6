// What is wrong with one request is refused at once, wherever it would have gone, and nothing of it stays.
import { describe, expect, test } from "vitest";
import "../../src/kernel/inlined.js";
import { openAiEdge } from "../../src/frontend/index.js";
import { RouterPlugins } from "../../src/plugins/bundle.js";
import { parsePolicy } from "../../src/plugins/policy/parse.js";
import type { RouterOptions, Selection } from "../../src/router/contract.js";
import { createRouter } from "../../src/router/create-router.js";
import type { KvRouter } from "../../src/router/kv-router.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const coded = (code: string, path?: string) => expect.objectContaining(path === undefined ? { code } : { code, path });
const workers = [1, 2].map((workerId) => ({ workerId, maxNumBatchedTokens: 1000, url: `http://w${workerId}` }));
const open = (options: Partial<RouterOptions> = {}) =>
  createRouter({ ...{ blockSize: 16, seed: 1, clock: new VirtualClock(), workers }, ...options });
const tokens = [1, 2, 3];

/** Everything a caller can see of a router's state, but for the memory it has laid out. */
const state = (r: KvRouter) =>
  JSON.stringify([r.loads(), { ...r.stats(), index: { ...r.stats().index, bytes: 0 } }, r.workers()]);
const expectIdle = (r: KvRouter) => {
  for (const { activePrefillTokens, activeDecodeBlocks, activeRequests } of r.loads()) {
    expect([activePrefillTokens, activeDecodeBlocks, activeRequests]).toEqual([0, 0, 0]);
  }
  expect(r.stats()).toMatchObject({ bookings: { live: 0 }, queue: { pending: 0 } });
};

/** One more than a number can hold exactly, and one more than a u64 can. */
const inexact = 2 ** 53 + 2;
const beyond = ["18446744073709551616", 2n ** 64n, -(2n ** 63n) - 1n];
const largest = ["18446744073709551615", 2n ** 64n - 1n, -1, -1n];
const noIds = [undefined, null, inexact, ...beyond, 1.5, "x", "", " 1", "0x1", {}];

describe("a request with", () => {
  const noIndex = { overlapScoreCredit: 0, hostCacheHitWeight: 0, diskCacheHitWeight: 0, sharedCacheMultiplier: 0 };
  const buckets = parsePolicy(`
default_policy_family: all
uncached_isl_buckets: [{ min_tokens: 0, bucket: short }, { min_tokens: 100, bucket: long }]
policy_classes:
  - { name: s, policy_family: all, cache_bucket: short, queue_policy: fcfs, quantum: 1, prefill_busy_threshold: 0 }
  - { name: l, policy_family: all, cache_bucket: long, queue_policy: wspt, quantum: 1, prefill_busy_threshold: 0 }
`);
  /** Where each request is tried: at an idle router, and where it would have to wait. */
  const places = async (): Promise<Partial<RouterOptions>[]> => [
    {},
    { config: { routerQueueThreshold: 0 } },
    { config: { routerQueueThreshold: 0, ...noIndex } },
    { policy: await buckets },
  ];

  const refused = async (change: object, code: string, path?: string) => {
    for (const [i, options] of (await places()).entries()) {
      const r = await open(options);
      const holders: Selection[] = [];
      if (i > 0) {
        for (const { workerId } of workers) holders.push(await r.select({ tokens, pinnedWorker: { workerId } }));
      }
      const before = state(r);
      const request = { requestId: "x", tokens, ...change } as never;
      await expect(r.select(request)).rejects.toThrowError(coded(code, path));
      if (code === "no_endpoints") expect(r.probe(request).outcome).toBe(code);
      else expect(() => r.probe(request)).toThrowError(coded(code, path));
      expect(state(r)).toBe(before);
      expect(r.booking("x")).toBeUndefined();
      const next = r.select({ requestId: "x", tokens });
      for (const { booking } of holders) booking.free();
      (await next).booking.free();
      expectIdle(r);
    }
  };

  const fields: [path: string, values: unknown[]][] = [
    ["expectedOutputTokens", [-1, Number.NaN, Number.POSITIVE_INFINITY, "12", null, 1n]],
    ["priorityJump", [Number.NaN, Number.POSITIVE_INFINITY, "5", null, 1n]],
    ["strictPriority", [-1, 2 ** 32, 1e308, 1.5, Number.NaN, "1", null, 1n]],
    ["sessionId", [inexact, 2n ** 60n, null, {}]],
  ];
  test.each(fields.flatMap(([field, values]) => values.map((value) => [field, value] as const)))(
    "the %s %o is invalid_request",
    (field, value) => refused({ [field]: value }, "invalid_request", field),
  );

  test.each([[], new Uint32Array(0), undefined, null, "a", new Float64Array(1)])(
    "the tokens %o is invalid_tokens",
    (t) => refused({ tokens: t }, "invalid_tokens", "tokens"),
  );

  test("a token that is none is invalid_tokens", () => refused({ tokens: [1, -1] }, "invalid_tokens", "tokens[1]"));

  test("an override out of range is invalid_config", () =>
    refused({ configOverride: { routerTemperature: -1 } }, "invalid_config", "configOverride.routerTemperature"));

  const constraints: [path: string, values: unknown[]][] = [
    ["requiredTaints", [null, "a", [5], [null], { a: 1 }]],
    ["preferredTaints", [null, "a", 5, true, [], ["a"]]],
  ];
  test.each(constraints.flatMap(([field, values]) => values.map((value) => [field, value] as const)))(
    "the %s %o is invalid_request",
    (field, value) =>
      refused({ routingConstraints: { [field]: value } }, "invalid_request", `routingConstraints.${field}`),
  );

  test.each([Number.NaN, Number.NEGATIVE_INFINITY, "1", null, true])("the taint weight %o is invalid_request", (a) =>
    refused(
      { routingConstraints: { preferredTaints: { a } } },
      "invalid_request",
      "routingConstraints.preferredTaints.a",
    ),
  );

  test("a required taint that no worker has finds no_endpoints", () =>
    refused({ routingConstraints: { requiredTaints: ["nobody's"] } }, "no_endpoints"));

  describe.each(["pinnedWorker", "affinityTarget"])("a %s of", (field) => {
    test.each(noIds)("the worker %o is invalid_request", (workerId) =>
      refused({ [field]: { workerId } }, "invalid_request", `${field}.workerId`),
    );
    test.each([-1, 2 ** 32, 1.5, Number.NaN, "0", 0n])("the rank %o is invalid_request", (dpRank) =>
      refused({ [field]: { workerId: 1, dpRank } }, "invalid_request", `${field}.dpRank`),
    );
  });

  test.each([{ workerId: 9 }, ...largest.map((workerId) => ({ workerId })), { workerId: 1, dpRank: 2 ** 32 - 1 }])(
    "the unknown pin %o finds no_endpoints",
    (pinnedWorker) => refused({ pinnedWorker }, "no_endpoints"),
  );

  test.each(noIds)("the allowed worker %o is invalid_request", (id) =>
    refused({ allowedWorkerIds: ["1", id] }, "invalid_request", "allowedWorkerIds[1]"),
  );

  test.each([
    ["sessionContext.sessionId", { sessionId: inexact }],
    ["sessionContext.parentSessionId", { sessionId: "s", parentSessionId: 2n ** 60n }],
    ["sessionContext.sessionFinal", { sessionId: "s", sessionFinal: "yes" }],
  ])("a bad %s is invalid_request", (path, sessionContext) => refused({ sessionContext }, "invalid_request", path));
});

describe("what looks odd is fine:", () => {
  test.each([
    { expectedOutputTokens: 0 },
    { expectedOutputTokens: 0.5 },
    { expectedOutputTokens: 1e308 },
    { priorityJump: -1e308 },
    { priorityJump: 1e308 },
    { strictPriority: 2 ** 32 - 1 },
    { routingConstraints: {} },
    { routingConstraints: { preferredTaints: { nobody: 1e308, elses: -1e308 } } },
    { sessionId: "18446744073709551616" },
    { sessionId: "9".repeat(1000) },
    { affinityTarget: { workerId: largest[0] } },
    { policyClass: "none of the profile" },
  ])("%o", async (change) => {
    const r = await open({ config: { sessionAffinityTtlSecs: 60, routerTrackOutputBlocks: true } });
    const { booking } = await r.select({ tokens, requestId: "x", ...change } as never);
    booking.firstToken();
    booking.tokens(100);
    expect(r.restore(r.snapshot())).toEqual({ ranks: 2, droppedRanks: 0, droppedBookings: 0 });
    expect(r.stats().bookings.live).toBe(1);
    booking.free();
    expectIdle(r);
  });

  test.each(largest)("the worker id %o, as 18446744073709551615 everywhere", async (workerId) => {
    const r = await open({ workers: [] });
    const id = "18446744073709551615";
    expect(r.addWorker({ workerId }).workerId).toBe(id);
    const held = [
      await r.select({ tokens, pinnedWorker: { workerId } }),
      await r.select({ tokens, allowedWorkerIds: [workerId] }),
      await r.select({ tokens, affinityTarget: { workerId } }),
      r.reserve({ requestId: "x", worker: { workerId }, sequenceHashes: [], islTokens: 1 }),
    ];
    expect(held.map(({ worker }) => worker.workerId)).toEqual([id, id, id, id]);
    r.setOverloaded([{ workerId }]);
    expect(r.probe({ tokens }).outcome).toBe("all_eligible_workers_overloaded");
    r.setOverloaded([]);
    r.setAvailable([workerId]);
    expect(r.bestWorker({ tokens }).workerId).toBe(id);
    expect(r.removeWorker(workerId)).toBe(true);
    expect(r.stats().bookings.live).toBe(0);
  });
});

describe.each([inexact, ...beyond, 1.5, "x", null])("the worker id %o is refused by", (workerId) => {
  const calls: Record<string, [call: (r: KvRouter, id: never) => unknown, code: string, path: string]> = {
    addWorker: [(r, id) => r.addWorker({ workerId: id }), "invalid_worker", "worker.workerId"],
    removeWorker: [(r, id) => r.removeWorker(id), "invalid_request", "workerId"],
    setOverloaded: [(r, id) => r.setOverloaded([{ workerId: id }]), "invalid_request", "ranks[0].workerId"],
    setAvailable: [(r, id) => r.setAvailable([id]), "invalid_request", "workerIds[0]"],
    reserve: [
      (r, id) => r.reserve({ requestId: "x", worker: { workerId: id }, sequenceHashes: [], islTokens: 1 }),
      "invalid_request",
      "worker.workerId",
    ],
    applyEvent: [(r, id) => r.applyEvent({ worker_id: id, event: { data: "cleared" } }), "invalid_event", "worker_id"],
  };
  test.each(Object.keys(calls))("%s", async (name) => {
    const [call, code, path] = calls[name]!;
    const r = await open();
    const before = state(r);
    expect(() => call(r, workerId as never)).toThrowError(coded(code, path));
    expect(state(r)).toBe(before);
  });
});

describe("reserve", () => {
  const rows: [field: string, values: unknown[]][] = [
    ["islTokens", [-1, 0.5, Number.NaN, 2 ** 53, "12", null, 1n]],
    ["effectivePrefillTokens", [-1, 0.5, Number.NaN, 21, "12", null, 1n]],
    ["sequenceHashes", ["12", 5, null, {}]],
    ["requestId", ["", 5, null]],
  ];
  test.each(rows.flatMap(([field, values]) => values.map((value) => [field, value] as const)))(
    "refuses the %s %o",
    async (field, value) => {
      const r = await open();
      const request = { requestId: "x", worker: { workerId: 1 }, sequenceHashes: [1n], islTokens: 20 };
      expect(() => r.reserve({ ...request, [field]: value } as never)).toThrowError(coded("invalid_request", field));
      expectIdle(r);
      r.reserve(request).free();
      expectIdle(r);
    },
  );

  test("of no tokens charges a request and nothing else", async () => {
    const r = await open();
    const booking = r.reserve({ requestId: "x", worker: { workerId: 1 }, sequenceHashes: [], islTokens: 0 });
    expect(r.loads()[0]).toMatchObject({ activePrefillTokens: 0, activeDecodeBlocks: 0, activeRequests: 1 });
    booking.free();
    expectIdle(r);
  });

  test("of more tokens than can be counted exactly leaves nothing behind", async () => {
    const r = await open();
    const bookings = ["a", "b", "c"].map((requestId, i) =>
      r.reserve({ requestId, worker: { workerId: 1 }, sequenceHashes: [], islTokens: 2 ** 53 - 1 - i }),
    );
    bookings.push(r.reserve({ requestId: "d", worker: { workerId: 1 }, sequenceHashes: [], islTokens: 1 }));
    for (const booking of bookings) booking.free();
    expectIdle(r);
  });
});

describe("a request id that is taken", () => {
  test("is refused to select and reserve until its booking ends, by whatever verb", async () => {
    for (const verb of ["free", "complete", "abort"] as const) {
      const r = await open();
      const reserve = () => r.reserve({ requestId: "x", worker: { workerId: 1 }, sequenceHashes: [], islTokens: 1 });
      const first = await r.select({ requestId: "x", tokens });
      const before = state(r);
      const taken = { code: "duplicate_request", status: 409, details: { requestId: "x" } };
      await expect(r.select({ requestId: "x", tokens })).rejects.toMatchObject(taken);
      expect(reserve).toThrowError(expect.objectContaining(taken));
      expect(state(r)).toBe(before);
      first.booking[verb]();
      reserve().free();
      (await r.select({ requestId: "x", tokens })).booking.free();
      expectIdle(r);
    }
  });

  test("by one that waits, is refused too, and the one that waits is none the worse", async () => {
    const r = await open({ config: { routerQueueThreshold: 0 }, workers: workers.slice(0, 1) });
    const holder = await r.select({ tokens });
    const waiting = r.select({ requestId: "x", tokens });
    const before = state(r);
    await expect(r.select({ requestId: "x", tokens })).rejects.toThrowError(coded("duplicate_request"));
    expect(() => r.reserve({ requestId: "x", worker: { workerId: 1 }, sequenceHashes: [], islTokens: 1 })).toThrowError(
      coded("duplicate_request"),
    );
    expect(state(r)).toBe(before);
    holder.booking.free();
    (await waiting).booking.free();
    (await r.select({ requestId: "x", tokens })).booking.free();
    expectIdle(r);
  });

  test("by one that is being classified, is refused too", async () => {
    let classified = () => {};
    const plugins = new RouterPlugins().withRequestClassifier(() => ({
      classify: async (request) => {
        await new Promise<void>((resolve) => {
          classified = resolve;
        });
        return request;
      },
    }));
    const r = await open({ plugins });
    const first = r.select({ requestId: "x", tokens });
    await expect(r.select({ requestId: "x", tokens })).rejects.toThrowError(coded("duplicate_request"));
    classified();
    (await first).booking.free();
    expectIdle(r);
  });
});

describe("a due time", () => {
  /** A router whose classifier sets each request's due time this many milliseconds after it came in. */
  async function setUp(dueMs: () => number) {
    const clock = new VirtualClock(1000);
    const plugins = new RouterPlugins().withRequestClassifier(() => ({
      classify: (request) => request.setDueAtMs(request.ingressAtMs + dueMs()),
    }));
    const config = { routerQueueThreshold: 0 };
    return { clock, r: await open({ clock, plugins, config, workers: workers.slice(0, 1) }) };
  }

  test.each([-1, -1e300])("%d ms ago is deadline_exceeded, on a free rank and on a busy one", async (ms) => {
    let dueMs = ms;
    const { r } = await setUp(() => dueMs);
    await expect(r.select({ requestId: "x", tokens })).rejects.toThrowError(coded("deadline_exceeded"));
    expectIdle(r);
    dueMs = 1000;
    const holder = await r.select({ requestId: "x", tokens });
    dueMs = ms;
    await expect(r.select({ requestId: "y", tokens })).rejects.toThrowError(coded("deadline_exceeded"));
    expect(r.stats()).toMatchObject({ bookings: { live: 1 }, queue: { pending: 0 } });
    holder.booking.free();
    expectIdle(r);
  });

  test("that comes while the request waits ends it, and its id may be used again", async () => {
    const { clock, r } = await setUp(() => 500);
    const holder = await r.select({ tokens, requestId: "holder" });
    const waiting = expect(r.select({ requestId: "x", tokens })).rejects.toThrowError(coded("deadline_exceeded"));
    await clock.advance(500);
    await waiting;
    expect(r.stats()).toMatchObject({ bookings: { live: 1 }, queue: { pending: 0, overdue: 1 } });
    holder.booking.free();
    (await r.select({ requestId: "x", tokens })).booking.free();
    expectIdle(r);
    expect(clock.armed).toBe(0);
  });
});

describe("a booking that is unknown or ended", () => {
  test.each(["unknown", "", "warmroute-1", 5, undefined, null])("is not found under the id %o", async (id) => {
    const r = await open();
    expect(r.booking(id as never)).toBeUndefined();
  });

  const verbs = {
    sent: (booking: Selection["booking"]) => booking.sent(),
    firstToken: (booking: Selection["booking"]) => booking.firstToken(),
    tokens: (booking: Selection["booking"]) => booking.tokens(64),
    prefillComplete: (booking: Selection["booking"]) => booking.prefillComplete(),
    outputBlock: (booking: Selection["booking"]) => booking.outputBlock(0.5),
    renew: (booking: Selection["booking"]) => booking.renew(),
    complete: (booking: Selection["booking"]) => booking.complete({ total_tokens: 5 }),
    abort: (booking: Selection["booking"]) => booking.abort(new Error("late")),
    free: (booking: Selection["booking"]) => booking.free(),
    dispose: (booking: Selection["booking"]) => booking[Symbol.dispose](),
  };
  test.each(Object.keys(verbs) as (keyof typeof verbs)[])(
    "does nothing on %s, from either handle, also when its id lives again",
    async (verb) => {
      const r = await open({ config: { routerTrackOutputBlocks: true } });
      const { booking } = await r.select({ requestId: "x", tokens });
      const found = r.booking("x")!;
      booking.free();
      expect(r.booking("x")).toBeUndefined();
      const again = await r.select({ requestId: "x", tokens });
      const before = state(r);
      for (const handle of [booking, found]) verbs[verb](handle);
      expect(state(r)).toBe(before);
      again.booking.free();
      expectIdle(r);
    },
  );

  test.each([-0.1, 1.1, Number.NaN, Number.POSITIVE_INFINITY, "0.5", true, null, 1n, [0.5]])(
    "takes no output block of the fraction %o",
    async (f) => {
      const r = await open();
      const { booking } = await r.select({ requestId: "x", tokens });
      const before = state(r);
      expect(() => booking.outputBlock(f as never)).toThrowError(coded("invalid_request", "decayFraction"));
      expect(state(r)).toBe(before);
      booking.free();
      expect(() => booking.outputBlock(f as never)).not.toThrow();
      expect(() => booking.tokens(-1)).not.toThrow();
      expectIdle(r);
    },
  );
});

describe("route", () => {
  const sent: unknown[] = [];
  const make = (options: Partial<RouterOptions> = {}) =>
    createRouter(
      {
        ...{ model: "m", seed: 1, workers, clock: new VirtualClock() },
        fetch: async (_, { body }) => {
          sent.push(JSON.parse(new TextDecoder().decode(body as Uint8Array)));
          return Response.json({ error: { message: "max_tokens" } }, { status: 400 });
        },
        ...options,
      },
      { entryPoint: "createRouter", edge: openAiEdge },
    );
  const headers = { "x-request-id": "x" };

  test.each([
    [{ prompt: "" }, "prompt"],
    [{ prompt: [] }, "prompt"],
    [{ prompt: [[]] }, "prompt[0]"],
    [{ prompt: null }, "prompt"],
    [{ messages: [] }, "messages"],
    [{ messages: null }, "messages"],
    [{}, "prompt"],
    [null, "body"],
    [[], "body"],
    ["a", "body"],
  ])("refuses the body %o, which has no prompt", async (body, path) => {
    const r = await make();
    const before = state(r);
    await expect(r.route(body as never, { headers })).rejects.toThrowError(coded("invalid_request", path));
    await expect(r.generate(body as never, { headers }).next()).rejects.toThrowError(coded("invalid_request", path));
    expect(state(r)).toBe(before);
    (await r.route({ prompt: "a" }, { headers })).booking.free();
    expectIdle(r);
  });

  test("refuses a prompt of which the tokenizer makes nothing", async () => {
    const r = await make({ tokenizer: { exact: true, encode: () => new Uint32Array(0) } });
    await expect(r.route({ prompt: "a" }, { headers })).rejects.toThrowError(coded("invalid_tokens", "tokens"));
    expectIdle(r);
  });

  const itself: Record<string, unknown> = { prompt: "a" };
  itself.itself = itself;
  test.each([
    ["a bigint", { prompt: "a", max_tokens: 12n }],
    ["itself", itself],
  ])("refuses a body that holds %s before anything is selected", async (_, body) => {
    const r = await make();
    const before = state(r);
    await expect(r.route(body, { headers })).rejects.toThrowError(coded("invalid_request", "body"));
    expect(state(r)).toBe(before);
  });

  // What a body may say beside its prompt differs by engine (0 and -1 mean something to some), so the worker judges it.
  test.each([-1, 0, 1.5, Number.NaN, "12", null, 1e308, 2 ** 53 + 2])(
    "hands max_tokens %o on as JSON writes it, and a worker that refuses it leaves nothing behind",
    async (max_tokens) => {
      const r = await make();
      const body = { prompt: "a", max_tokens };
      sent.length = 0;
      await expect(r.generate(body, { headers }).next()).rejects.toMatchObject({
        code: "upstream_failed",
        details: { status: 400 },
      });
      expect(sent).toEqual([JSON.parse(JSON.stringify(body))]);
      expectIdle(r);
      const { dispatch, booking } = await r.route(body, { headers });
      expect(JSON.parse(new TextDecoder().decode(dispatch!.init.body as Uint8Array))).toEqual(sent[0]);
      booking.free();
      expectIdle(r);
    },
  );
});
