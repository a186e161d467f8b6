// A request classifier in a real router and behind the HTTP frontend (spec: plugins.md §5).
import { describe, expect, test } from "vitest";
import "../../src/kernel/inlined.js";
import { HttpFrontend, openAiEdge } from "../../src/frontend/index.js";
import type { ClassifyRequest } from "../../src/plugins.js";
import type { RouterOptions } from "../../src/router/contract.js";
import { createRouter } from "../../src/router/create-router.js";
import { classifies, Diary, selects, settled } from "./plugin-bundle.js";

const tokens = Uint32Array.from({ length: 100 }, (_, i) => i);
const coded = (code: string) => expect.objectContaining({ code });
const silent = { debug() {}, info() {}, warn() {}, error() {} };

const queues = `
default_policy_family: regular
uncached_isl_buckets: [{min_tokens: 0, bucket: warm}, {min_tokens: 65, bucket: cold}]
policy_classes:
  - {name: reg_warm, policy_family: regular, cache_bucket: warm, quantum: 8}
  - {name: reg_cold, policy_family: regular, cache_bucket: cold, quantum: 8}
  - {name: vip, quantum: 8}
`;

/** A router of three workers whose classifier does as it is told. */
async function setUp(classify: Diary["classify"], options: Partial<RouterOptions> & { yaml?: string } = {}) {
  const { yaml = "", ...more } = options;
  const diary = new Diary();
  diary.classify = classify;
  const router = await createRouter(
    {
      seed: 1n,
      plugins: await diary.bundle(`${yaml}\n${classifies}`),
      workers: ["1", "2", "3"].map((workerId) => ({ workerId, url: `http://w${workerId}` })),
      log: silent,
      ...more,
    },
    { entryPoint: "createRouter", edge: openAiEdge },
  );
  return { router, diary, types: () => diary.events.map(({ type }) => type) };
}

describe("what a classifier sets", () => {
  test("a target decides under the default policy, and is gone with the request", async () => {
    const { router } = await setUp((request) => request.setWorkerSelectionTarget("3"));
    for (let i = 0; i < 5; i++) {
      const { worker, reason } = await router.select({ requestId: `r${i}`, tokens });
      expect([worker.workerId, reason]).toEqual(["3", "affinity"]);
    }
    const free = await router.select({ tokens, lifecycle: false });
    expect(free.reason).toBe("tie");
    expect(free.worker.workerId).not.toBe("3");
    await router.close();
  });

  test("a target replaces the caller's, a cleared one leaves the choice free, and a pin stands", async () => {
    const replaced = await setUp((request) => request.setWorkerSelectionTarget("3", 0));
    const affinityTarget = { workerId: "1" };
    expect((await replaced.router.select({ requestId: "a", tokens, affinityTarget })).worker.workerId).toBe("3");
    const pinned = await replaced.router.select({ requestId: "b", tokens, pinnedWorker: { workerId: "2" } });
    expect([pinned.worker.workerId, pinned.reason]).toEqual(["2", "pinned"]);
    const cleared = await setUp((request) => request.clearWorkerSelectionTarget());
    expect((await cleared.router.select({ requestId: "a", tokens, affinityTarget })).reason).not.toBe("affinity");
    const untouched = await setUp((request) => request);
    expect((await untouched.router.select({ requestId: "a", tokens, affinityTarget })).reason).toBe("affinity");
    for (const { router } of [replaced, cleared, untouched]) await router.close();
  });

  test("a target that is not eligible changes nothing", async () => {
    const { router } = await setUp((request) => request.setWorkerSelectionTarget("99"));
    expect((await router.select({ requestId: "a", tokens })).reason).toBe("no_signal");
    await router.close();
  });

  test.each([
    ["vip", "vip"],
    ["regular", "reg_cold"],
  ])("the class %s puts the request into %s", async (name, policyClass) => {
    const { router } = await setUp((request) => request.setPolicyClass(name), { yaml: queues });
    expect((await router.select({ requestId: "r", tokens, policyClass: "vip" })).policyClass).toBe(policyClass);
    await router.close();
  });

  test.each(["reg_cold", "default", "Vip", ""])("the class %j is no name that it may use", async (name) => {
    const { router, diary } = await setUp((request) => request.setPolicyClass(name), { yaml: queues });
    await expect(router.select({ requestId: "r", tokens })).rejects.toEqual(coded("invalid_classification_metadata"));
    expect(router.stats().bookings.live).toBe(0);
    await settled();
    expect(diary.events).toEqual([
      { type: "aborted", requestId: "r", error: coded("invalid_classification_metadata") },
    ]);
    await router.close();
  });

  test("priorities need the host's leave", async () => {
    const set = (request: ClassifyRequest) => request.setStrictPriority(2).setPriorityJump(1);
    const refused = await setUp(set);
    await expect(refused.router.select({ requestId: "r", tokens })).rejects.toEqual(coded("request_classifier_failed"));
    const allowed = await setUp(set, { allowPriority: true });
    await allowed.router.select({ requestId: "r", tokens });
    await Promise.all([refused.router.close(), allowed.router.close()]);
  });
});

describe("what a classifier reads", () => {
  test("the request's sizes, its class, its session, and what no worker has cached", async () => {
    let seen: unknown;
    const { router } = await setUp((request) => {
      const { requestId, policyClass, inputTokens, sessionContext, pinnedWorker, schedulingCostTokens, progress } =
        request;
      seen = { requestId, policyClass, inputTokens, sessionContext, pinnedWorker, schedulingCostTokens, ...progress };
      return request;
    });
    const hashes = ["1", "2"].map((block_hash, i) => ({ block_hash, tokens_hash: String(i + 5) }));
    expect(
      router.applyEvent({ worker_id: "2", event: { data: { stored: { parent_hash: null, blocks: hashes } } } }).applied,
    ).toBe(true);
    await router.select({ requestId: "r", tokens, policyClass: "x", sessionId: "s", pinnedWorker: { workerId: "2" } });
    expect(seen).toEqual({
      requestId: "r",
      policyClass: "x",
      inputTokens: 100,
      sessionContext: { sessionId: "s" },
      pinnedWorker: { workerId: "2", dpRank: 0 },
      schedulingCostTokens: 100,
    });
    await router.close();
  });

  test("attributes, which only the host fills", async () => {
    const seen: unknown[] = [];
    const { router } = await setUp(
      (request) => {
        seen.push(Object.fromEntries(request.attributes));
        expect(() => Map.prototype.set.call(request.attributes, "tenant", "root")).toThrow(TypeError);
        return request;
      },
      { attributes: ({ headers, auth }) => ({ tenant: headers.get("x-tenant") ?? undefined, user: auth as string }) },
    );
    await router.select({ requestId: "a", tokens }, { headers: { "x-tenant": "acme" }, auth: "u" });
    await router.select({ requestId: "b", tokens }, { auth: "u" });
    expect(seen).toEqual([{ tenant: "acme", user: "u" }, { user: "u" }]);
    await expect(router.select({ requestId: "c", tokens }, { auth: "ü".repeat(65) })).rejects.toEqual(
      expect.objectContaining({ code: "invalid_request", path: "attributes.user" }),
    );
    expect(router.stats().bookings.live).toBe(2);
    await router.close();
  });

  test.each([
    async () => ({ tenant: "a" }),
    async () => Promise.reject(new Error("no")),
    () => undefined,
    () => "a",
    () => ["a"],
    () => new Map([["a", "b"]]),
    () => ({ tenant: 5 }),
    () => Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`a${i}`, "x"])),
  ])("no attributes of a hook that answers none", async (hook) => {
    const { router } = await setUp((request) => request, { attributes: hook as never });
    await expect(router.select({ requestId: "a", tokens })).rejects.toEqual(
      expect.objectContaining({ code: "invalid_plugin", path: "attributes" }),
    );
    await router.close();
  });

  test("nothing of the prompt, the headers or the body", async () => {
    let reachable = "";
    const { router } = await setUp((request) => {
      const walk = (value: unknown, depth: number): void => {
        if (typeof value === "string") reachable += `${value}\n`;
        if (depth === 0 || typeof value !== "object" || value === null) return;
        for (const key of [
          ...Object.keys(value),
          ...Object.keys(Object.getOwnPropertyDescriptors(Object.getPrototypeOf(value) ?? {})),
        ]) {
          try {
            walk((value as Record<string, unknown>)[key], depth - 1);
          } catch {}
        }
      };
      walk(request, 4);
      return request;
    });
    await router.route({ model: "m", prompt: "a secret prompt" }, { headers: { authorization: "Bearer secret-key" } });
    expect(reachable).not.toMatch(/secret/);
    await router.close();
  });
});

describe("a client's class", () => {
  test.each([
    [undefined, "reg_cold", 0],
    ["vip", "vip", 0],
    ["regular", "reg_cold", 0],
    ["reg_warm", "reg_cold", 1],
    ["nobody", "reg_cold", 1],
  ])("%s means %s", async (asked, policyClass, unknown) => {
    const { router } = await setUp((request) => request, { yaml: queues });
    const selection = await router.select({
      requestId: "r",
      tokens,
      ...(asked === undefined ? {} : { policyClass: asked }),
    });
    expect(selection.policyClass).toBe(policyClass);
    expect(router.stats().queue.unknownClasses).toBe(unknown);
    await router.close();
  });

  test("is sorted by what no worker has cached", async () => {
    const { router } = await setUp((request) => request, { yaml: queues, blockSize: 16 });
    const prompt = Uint32Array.from({ length: 96 }, (_, i) => i * 7);
    expect((await router.select({ requestId: "a", tokens: prompt })).policyClass).toBe("reg_cold");
    const { hashTokens } = await import("../../src/kernel/hash.js");
    const { blockHashes } = hashTokens(prompt, 16);
    router.storeBlocks(
      { workerId: "2", dpRank: 0 },
      "device",
      null,
      BigUint64Array.from([1n, 2n]),
      blockHashes.slice(0, 2),
    );
    // 96 tokens, 32 of them cached: 64 are left, below the cold bucket's 65.
    expect((await router.select({ requestId: "b", tokens: prompt })).policyClass).toBe("reg_warm");
    await router.close();
  });
});

test("the decision log has what a classifier refuses, once", async () => {
  const { router } = await setUp(
    (request) => {
      if (request.requestId === "bad") throw new Error("no");
      return request.requestId === "late" ? request.setDueAtMs(-1) : request;
    },
    { decisionLog: true },
  );
  const refused = async (request: object) => {
    const error = await router.select({ tokens, ...request }).catch((reason) => reason);
    return error.code;
  };
  const kept = await router.select({ requestId: "good", tokens });
  const codes: string[] = [];
  for (const requestId of [undefined, "late", "bad", "good"]) codes.push(await refused(requestId ? { requestId } : {}));
  expect(router.decisions().map(({ requestId, outcome }) => [requestId, outcome])).toEqual([
    ["good", "selected"],
    ...[undefined, "late", "bad", "good"].map((requestId, i) => [requestId, codes[i]]),
  ]);
  expect(codes).toEqual(["lifecycle_required", "deadline_exceeded", "request_classifier_failed", "duplicate_request"]);
  kept.booking.free();
});

describe("a retry", () => {
  test("selects again without asking again, and the request has one end", async () => {
    const { router, diary, types } = await setUp((request) => request.setWorkerSelectionTarget("2"));
    const first = await router.select({ requestId: "r", tokens });
    first.booking.sent();
    first.booking.tokens(7);
    const second = await first.retry();
    expect(second.worker.workerId).toBe("2");
    expect(router.stats().bookings.live).toBe(1);
    second.booking.firstToken();
    second.booking.tokens(5);
    second.booking.complete({ total_tokens: 90 });
    await settled();
    expect(diary.classified).toHaveLength(1);
    expect(types()).toEqual(["sent", "responding", "sent", "responding", "completed"]);
    expect(diary.events.at(-1)).toMatchObject({ contextTokens: 112, worker: { workerId: "2" } });
    await expect(second.retry()).rejects.toEqual(coded("lifecycle_ended"));
    await expect(first.retry()).rejects.toEqual(coded("lifecycle_ended"));
    await router.close();
  });

  test("that finds no worker ends the request", async () => {
    const { router, types } = await setUp((request) => request);
    const first = await router.select({ requestId: "r", tokens, allowedWorkerIds: ["2"] });
    router.addWorker({ workerId: "2", role: "decode" });
    await settled();
    expect(types()).toEqual(["aborted"]);
    await expect(first.retry()).rejects.toEqual(coded("lifecycle_ended"));
    await router.close();
  });

  test("works without a classifier, too", async () => {
    const router = await createRouter({ workers: [{ workerId: "1" }] });
    const first = await router.select({ tokens });
    const second = await first.retry();
    expect(second.requestId).toBe(first.requestId);
    expect(router.loads()[0]!.activeRequests).toBe(1);
    first.booking.free();
    expect(router.loads()[0]!.activeRequests).toBe(1);
    second.booking.free();
    expect(router.loads()[0]!.activeRequests).toBe(0);
    await router.close();
  });
});

describe("a classifier that fails", () => {
  const never = () => new Promise<ClassifyRequest>(() => {});
  const failures: Record<string, [Diary["classify"], number, string, Partial<RouterOptions>?]> = {
    throws: [
      () => {
        throw new Error("SECRET");
      },
      500,
      "request_classifier_failed",
    ],
    "rejects with no error": [() => Promise.reject("SECRET"), 500, "request_classifier_failed"],
    "answers nothing": [(() => undefined) as never, 500, "invalid_classification_metadata"],
    "answers a copy": [(request) => ({ ...request }) as never, 500, "invalid_classification_metadata"],
    "sets no cost": [(request) => request.setSchedulingCostTokens(0), 500, "invalid_classification_metadata"],
    "sets a time that has passed": [(request) => request.setDueAtMs(request.ingressAtMs - 1), 429, "deadline_exceeded"],
    "never answers": [never, 429, "classify_timeout", { classifyTimeoutMs: 20 }],
  };

  test.each(Object.keys(failures))("%s: fails this request only, with a constant body", async (name) => {
    const [classify, status, code, options] = failures[name]!;
    let bad = true;
    const { router, diary } = await setUp((request, n) => (bad ? classify(request, n) : request), {
      model: "m",
      ...options,
    });
    const frontend = new HttpFrontend({ routers: [router], fetch: async () => Response.json({}) });
    const ask = () =>
      frontend.fetch(
        new Request("http://r/v1/completions", {
          method: "POST",
          headers: { "content-type": "application/json", "x-request-id": "same" },
          body: JSON.stringify({ model: "m", prompt: "SECRET" }),
        }),
      );
    const answer = await ask();
    expect(answer.status).toBe(status);
    const text = await answer.text();
    expect(JSON.parse(text).error.code).toBe(code);
    expect(text).not.toMatch(/SECRET/);
    expect(router.stats().bookings.live).toBe(0);
    bad = false;
    const next = await ask();
    expect(next.status).toBe(200);
    await next.text();
    await settled();
    expect(diary.events.map(({ type }) => type)).toEqual(["aborted", "sent", "responding", "completed"]);
    await router.close();
  });

  test("never answers, and the client leaves: aborted, without a worker and without an error", async () => {
    const { router, diary } = await setUp(never);
    const leave = new AbortController();
    const asked = router.select({ requestId: "r", tokens }, { signal: leave.signal });
    leave.abort(new Error("gone"));
    await expect(asked).rejects.toThrow("gone");
    await settled();
    expect(diary.events).toEqual([{ type: "aborted", requestId: "r" }]);
    expect(router.stats()).toMatchObject({ bookings: { live: 0 }, classifier: { live: 0, pending: 0 } });
    await router.close();
  });

  test("holds a second one back beyond maxPending", async () => {
    const { router } = await setUp(never, { maxPending: 1 });
    const first = router.select({ requestId: "a", tokens }).catch((error) => error);
    await expect(router.select({ requestId: "b", tokens })).rejects.toEqual(coded("classify_pending_limit"));
    await router.close();
    expect(await first).toEqual(coded("shutting_down"));
  });

  test("and one id at a time", async () => {
    const { router } = await setUp((request) => request);
    await router.select({ requestId: "r", tokens });
    await expect(router.select({ requestId: "r", tokens })).rejects.toEqual(
      expect.objectContaining({ code: "duplicate_request", status: 409 }),
    );
    await router.close();
  });
});

test("no error body and no log line holds a value of a request", { timeout: 60_000 }, async () => {
  const said: string[] = [];
  const note = (message: string, fields?: unknown) => void said.push(message, JSON.stringify(fields ?? {}));
  const log = { debug: note, info: note, warn: note, error: note };
  let turn = 0;
  const { router, diary } = await setUp(
    (request) => {
      turn++;
      if (turn % 5 === 0) throw new Error("no");
      if (turn % 5 === 1) return request.setPolicyClass("nobody");
      if (turn % 5 === 2) return request.setSchedulingCostTokens(-turn);
      if (turn % 5 === 3) return request.setWorkerSelectionTarget("nobody");
      return request;
    },
    {
      model: "m",
      log,
      yaml: selects("aggregated"),
      attributes: ({ headers }) => ({ tenant: headers.get("x-tenant")! }),
    },
  );
  const frontend = new HttpFrontend({ routers: [router], fetch: () => Promise.reject(new TypeError("down")) });
  const bodies: string[] = [];
  for (let i = 0; i < 10_000; i++) {
    // A marker that nothing else can contain, in a value that is odd in one way or another.
    const marker = `zq${i.toString(36)}qz`;
    const odd = ["", "\u0001", "é", '"', "\\", "%s", "{{", "a".repeat(200)][i % 8]!;
    const header = marker + ["", "!", ";", "'", "%", "{", "a".repeat(200)][i % 7];
    const body = [
      JSON.stringify({ model: "m", prompt: marker + odd }),
      JSON.stringify({ model: marker + odd, prompt: "p" }),
      JSON.stringify({ model: "m", prompt: [marker + odd, 5] }),
      JSON.stringify({ model: "m", messages: [{ role: marker, content: { [marker]: odd } }] }),
      `{"model": "m", "prompt": ${marker}`,
    ][i % 5]!;
    const answer = await frontend.fetch(
      new Request(`http://r/v1/${i % 5 === 3 ? "chat/completions" : "completions"}`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "x-dynamo-meta-policy-class": header,
          "x-session-id": header,
          "x-tenant": header,
        },
        body,
      }),
    );
    expect(answer.status).toBeGreaterThanOrEqual(400);
    bodies.push(await answer.text());
  }
  await settled();
  const registered = JSON.stringify([diary.providers, diary.factories]);
  expect(
    bodies.concat(said, registered, JSON.stringify(router.stats())).filter((text) => /zq\w+qz/.test(text)),
  ).toEqual([]);
  expect(said.length).toBeGreaterThan(1000);
  await router.close();
});
