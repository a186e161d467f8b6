import { describe, expect, test } from "vitest";
import { WarmrouteError } from "../../src/core/errors.js";
import { createFrontend, type FrontendOptions } from "../../src/frontend/index.js";
import type { Router } from "../../src/router/contract.js";
import { fakeRouter } from "./fake-router.js";

const worker = { workerId: "5", url: "http://w" };

/** A frontend over one fake worker that answers `ok` and keeps what it got. */
function setUp(options: Partial<FrontendOptions> = {}, routerOptions: { evidence?: string } = {}) {
  const fake = fakeRouter([worker], routerOptions);
  const upstream: { url: string; headers: Headers; body: Uint8Array }[] = [];
  const errors: unknown[] = [];
  const frontend = createFrontend({
    routers: [fake.router],
    fetch: async (url, init) => {
      upstream.push({ url, headers: new Headers(init.headers), body: init.body as Uint8Array });
      return new Response("ok", { headers: { "x-own": "1" } });
    },
    onError: (error) => errors.push(error),
    ...options,
  });
  return { ...fake, frontend, upstream, errors };
}

const post = (path: string, body: BodyInit, headers: Record<string, string> = {}) =>
  new Request(`http://router${path}`, {
    method: "POST",
    body,
    headers: { "content-type": "application/json", ...headers },
  });

const chat = (body: unknown, headers = {}) => post("/v1/chat/completions", JSON.stringify(body), headers);
const completion = (body: unknown, headers = {}) => post("/v1/completions", JSON.stringify(body), headers);

const text = (tokens: Uint32Array | readonly number[]) => new TextDecoder().decode(Uint8Array.from(tokens));

describe("a good request", () => {
  test("is routed by its bytes and forwarded byte for byte, unknown fields and all", async () => {
    const { frontend, requests, upstream } = setUp();
    const body = '{ "model":"m",\n "zzz": [1, 2.50],  "messages":[{"role":"user","content":"hé"}] }';
    const answer = await frontend.fetch(post("/v1/chat/completions?beta=1", body, { authorization: "Bearer k" }));
    expect(await answer.text()).toBe("ok");
    expect(text(requests[0]!.tokens)).toBe("user\x1fhé\x1e");
    expect(upstream[0]!.url).toBe("http://w/v1/chat/completions?beta=1");
    expect(new TextDecoder().decode(upstream[0]!.body)).toBe(body);
    expect(upstream[0]!.headers.get("authorization")).toBe("Bearer k");
  });

  test("is answered with the decision in its headers", async () => {
    const { frontend } = setUp();
    const answer = await frontend.fetch(completion({ model: "m", prompt: "a" }));
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "x-warmroute-worker": "5",
      "x-warmroute-dp-rank": "1",
      "x-warmroute-overlap-blocks": "3",
      "x-warmroute-evidence": "events",
      "x-own": "1",
    });
  });

  test("tells the router whether the tokens are the engine's own", async () => {
    const { frontend, requests } = setUp();
    for (const prompt of ["a", [1, 2]]) await frontend.fetch(completion({ model: "m", prompt }));
    expect(requests.map(({ tokensExact }) => tokensExact)).toEqual([false, true]);
  });

  test("keeps its request id, or gets one; the worker gets the same", async () => {
    const { frontend, requests, upstream } = setUp();
    const kept = await frontend.fetch(completion({ model: "m", prompt: "a" }, { "x-request-id": "my-1" }));
    expect(kept.headers.get("x-request-id")).toBe("my-1");
    expect(requests[0]!.requestId).toBe("my-1");
    for (const bad of ["", "two words", "x".repeat(129)]) {
      const made = await frontend.fetch(completion({ model: "m", prompt: "a" }, { "x-request-id": bad }));
      expect(made.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    }
    expect(upstream.map(({ headers }) => headers.get("x-request-id"))).toEqual(
      requests.map(({ requestId }) => requestId),
    );
  });

  test("may leave out the model where there is only one", async () => {
    const { frontend } = setUp();
    expect((await frontend.fetch(completion({ prompt: "a" }))).status).toBe(200);
  });

  test("C06: text inside a prompt is no field; only tokens reach the router", async () => {
    const { frontend, requests } = setUp();
    await frontend.fetch(completion({ model: "m", prompt: '{"user": "bob"} one' }));
    await frontend.fetch(completion({ model: "m", prompt: '{"user": "bob"} two' }));
    for (const request of requests) {
      expect(Object.keys(request).sort()).toEqual(["explain", "requestId", "tokens", "tokensExact", "unitsPerToken"]);
    }
  });
});

describe("C13: every shape of a prompt is taken or refused with a reason", () => {
  test.each([
    ["/v1/completions", { prompt: "a" }, "a"],
    ["/v1/completions", { prompt: ["ab"] }, "ab"],
    ["/v1/completions", { prompt: [97, 98] }, "ab"],
    ["/v1/completions", { prompt: [[97], [98]] }, "a\xffb"],
    ["/v1/completions", { prompt: ["a", "b"] }, "a\xffb"],
    ["/v1/chat/completions", { messages: [{ role: "assistant", content: null }] }, "assistant\x1f\x1e"],
    ["/v1/chat/completions", { messages: [{ role: "assistant" }] }, "assistant\x1f\x1e"],
    [
      "/v1/chat/completions",
      { messages: [{ role: "user", content: [{ type: "text", text: "a" }, { type: "image_url" }, "b"] }] },
      "user\x1fa\x1fb\x1e",
    ],
  ])("%s %j is taken", async (path, body, expected) => {
    const { frontend, requests } = setUp();
    const answer = await frontend.fetch(post(path, JSON.stringify({ model: "m", ...body })));
    expect(answer.status).toBe(200);
    const tokens = [...requests[0]!.tokens].map((id) => (id === 0xffffffff ? 0xff : id));
    expect(String.fromCharCode(...tokens)).toBe(expected);
  });

  test.each([
    ["/v1/completions", {}, "prompt"],
    ["/v1/completions", { prompt: null }, "prompt"],
    ["/v1/completions", { prompt: "" }, "prompt"],
    ["/v1/completions", { prompt: 7 }, "prompt"],
    ["/v1/completions", { prompt: {} }, "prompt"],
    ["/v1/completions", { prompt: [] }, "prompt"],
    ["/v1/completions", { prompt: [[]] }, "prompt[0]"],
    ["/v1/completions", { prompt: ["a", ""] }, "prompt[1]"],
    ["/v1/completions", { prompt: ["a", 1] }, "prompt[1]"],
    ["/v1/completions", { prompt: [null] }, "prompt[0]"],
    ["/v1/completions", { prompt: [1, "a"] }, "prompt[1]"],
    ["/v1/completions", { prompt: [1, -1] }, "prompt[1]"],
    ["/v1/completions", { prompt: [1.5] }, "prompt[0]"],
    ["/v1/completions", { prompt: [4294967296] }, "prompt[0]"],
    ["/v1/completions", { prompt: [[1], [2, true]] }, "prompt[1][1]"],
    ["/v1/chat/completions", {}, "messages"],
    ["/v1/chat/completions", { messages: "a" }, "messages"],
    ["/v1/chat/completions", { messages: [] }, "messages"],
    ["/v1/chat/completions", { messages: [null] }, "messages[0]"],
    ["/v1/chat/completions", { messages: [{ content: "a" }] }, "messages[0].role"],
    ["/v1/chat/completions", { messages: [{ role: 1, content: "a" }] }, "messages[0].role"],
    ["/v1/chat/completions", { messages: [{ role: "user", content: 1 }] }, "messages[0].content"],
    ["/v1/chat/completions", { messages: [{ role: "user", content: [1] }] }, "messages[0].content[0]"],
    ["/v1/completions", { model: 1, prompt: "a" }, "model"],
  ])("%s %j is refused", async (path, body, param) => {
    const { frontend, requests } = setUp();
    const answer = await frontend.fetch(post(path, JSON.stringify({ model: "m", ...body })));
    expect(answer.status).toBe(400);
    const { error } = (await answer.json()) as { error: Record<string, unknown> };
    expect(error).toMatchObject({ type: "invalid_request_error", code: "invalid_request", param });
    expect(error.message).toContain(param);
    expect(requests).toHaveLength(0);
  });
});

describe("a bad request", () => {
  const secret = "my secret words";
  test.each([
    ["no JSON", `{"prompt": "${secret}`, {}, 400, "invalid_json"],
    ["bare words", secret, {}, 400, "invalid_json"],
    ["no object", `["${secret}"]`, {}, 400, "invalid_json"],
    ["nothing", "", {}, 400, "invalid_json"],
    ["no UTF-8", new Uint8Array([0x7b, 0xff, 0x7d]), {}, 400, "invalid_json"],
    ["a form", secret, { "content-type": "application/x-www-form-urlencoded" }, 415, "unsupported_media_type"],
    ["too large", `{"prompt":"${"x".repeat(2000)}"}`, {}, 413, "request_too_large"],
    ["another model", `{"model":"${secret}","prompt":"a"}`, {}, 404, "model_not_found"],
  ])("%s", async (_, body, headers, status, code) => {
    const { frontend, errors, live } = setUp({ maxBodyBytes: 1000 });
    const answer = await frontend.fetch(post("/v1/completions", body, headers));
    expect(answer.status).toBe(status);
    expect(answer.headers.get("x-request-id")).toBeTruthy();
    const told = await answer.text();
    expect(JSON.parse(told).error).toMatchObject({ code, type: "invalid_request_error" });
    expect(told + String(errors[0])).not.toContain("secret");
    expect(live.size).toBe(0);
  });

  test("a body of unknown length is cut off at the limit", async () => {
    const { frontend } = setUp({ maxBodyBytes: 1000 });
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 100;
        controller.enqueue(new Uint8Array(100).fill(0x20));
      },
    });
    const init = { method: "POST", body: endless, duplex: "half" };
    const answer = await frontend.fetch(new Request("http://router/v1/completions", init as RequestInit));
    expect(answer.status).toBe(413);
    expect(sent).toBeLessThan(2000);
  });

  test.each([
    ["GET", "/v1/nothing", 404, "not_found", null],
    ["GET", "/", 404, "not_found", null],
    ["GET", "/v1/completions", 405, "method_not_allowed", "POST"],
    ["DELETE", "/v1/chat/completions", 405, "method_not_allowed", "POST"],
    ["POST", "/v1/models", 405, "method_not_allowed", "GET"],
    ["DELETE", "/v1/models/m", 405, "method_not_allowed", "GET"],
  ])("%s %s", async (method, path, status, code, allow) => {
    const answer = await setUp().frontend.fetch(new Request(`http://router${path}`, { method }));
    expect(answer.status).toBe(status);
    expect(answer.headers.get("allow")).toBe(allow);
    expect(((await answer.json()) as { error: { code: string } }).error.code).toBe(code);
  });
});

describe("a failure", () => {
  const failing = (error: unknown) =>
    ({ model: "m", workers: () => [], serveAt() {}, select: () => Promise.reject(error) }) as unknown as Router;

  test.each([
    [new WarmrouteError("no_endpoints", "none"), 503, "no_endpoints", "server_error", "1"],
    [
      new WarmrouteError("all_eligible_workers_overloaded", "all busy", { retryAfterMs: 2500 }),
      429,
      "all_eligible_workers_overloaded",
      "rate_limit_error",
      "3",
    ],
    [new WarmrouteError("duplicate_request", "twice"), 409, "duplicate_request", "invalid_request_error", null],
    [new Error("quotes the prompt"), 500, "internal_error", "server_error", null],
  ])("%s of the router", async (thrown, status, code, type, retryAfter) => {
    const { frontend, errors } = setUp({ routers: [failing(thrown)] });
    const answer = await frontend.fetch(chat({ model: "m", messages: [{ role: "user", content: "a" }] }));
    expect(answer.status).toBe(status);
    expect(answer.headers.get("retry-after")).toBe(retryAfter);
    const told = await answer.text();
    expect(JSON.parse(told).error).toMatchObject({ code, type });
    expect(told).not.toContain("quotes");
    expect(errors).toEqual([thrown]);
  });

  test("of onDecision releases the booking, too", async () => {
    const onDecision = () => {
      throw new Error("quotes the prompt");
    };
    const { frontend, ended } = setUp({ onDecision });
    const answer = await frontend.fetch(completion({ model: "m", prompt: "a" }));
    expect(answer.status).toBe(500);
    expect(ended).toEqual(["abort"]);
  });

  test("of the connection is 502 and releases the booking", async () => {
    const { frontend, live, ended } = setUp({ fetch: () => Promise.reject(new TypeError("fetch failed")) });
    const answer = await frontend.fetch(completion({ model: "m", prompt: "a" }));
    expect(answer.status).toBe(502);
    expect(((await answer.json()) as { error: { code: string } }).error.code).toBe("upstream_failed");
    expect(ended).toEqual(["abort"]);
    expect(live.size).toBe(0);
  });

  test("status of the worker passes through untouched and releases the booking", async () => {
    const body = '{"error": {"message":"too long"} }';
    const { frontend, ended } = setUp({ fetch: async () => new Response(body, { status: 400 }) });
    const answer = await frontend.fetch(completion({ model: "m", prompt: "a" }));
    expect(answer.status).toBe(400);
    expect(await answer.text()).toBe(body);
    expect(answer.headers.get("x-warmroute-worker")).toBe("5");
    expect(ended).toEqual(["abort"]);
  });

  test("to be open: a closed frontend answers 503, and /health still 200", async () => {
    const { frontend } = setUp();
    frontend.close();
    const answer = await frontend.fetch(completion({ model: "m", prompt: "a" }));
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after")).toBe("1");
    expect((await frontend.fetch(new Request("http://router/health"))).status).toBe(200);
  });
});

describe("/v1/models", () => {
  const list = async (options: Partial<FrontendOptions>) => {
    const answer = await setUp(options).frontend.fetch(new Request("http://router/v1/models"));
    return ((await answer.json()) as { data: { id: string }[] }).data.map(({ id }) => id);
  };

  test("lists what routers name", async () => {
    expect(await list({ routers: [fakeRouter([worker]).router, fakeRouter([], { model: "n" }).router] })).toEqual([
      "m",
      "n",
    ]);
  });

  test("asks the fallback's workers until one answers", async () => {
    const { router } = fakeRouter([
      { workerId: "1", url: "http://down" },
      { workerId: "2", url: "http://up" },
    ]);
    const fetch = async (url: string) => {
      if (url.startsWith("http://down")) throw new TypeError("fetch failed");
      return Response.json({ object: "list", data: [{ id: "llama" }] });
    };
    expect(await list({ routers: [], fallback: router, fetch })).toEqual(["llama"]);
  });

  const twoWorkers = () =>
    fakeRouter([
      { workerId: "1", url: "http://one" },
      { workerId: "2", url: "http://two" },
    ]).router;
  const get = (path: string, options: Partial<FrontendOptions>) => {
    const { frontend, errors } = setUp(options);
    return frontend.fetch(new Request(`http://router${path}`)).then(async (answer) => ({
      status: answer.status,
      body: (await answer.json()) as Record<string, unknown> & { error: Record<string, string> },
      errors: errors as WarmrouteError[],
    }));
  };

  test.each([
    ["refuses", () => Promise.reject(new TypeError("x", { cause: { code: "ECONNREFUSED" } })), "did not answer"],
    ["is broken", async () => new Response("down", { status: 500 }), "answered with status 500"],
    ["is no worker", async () => new Response("<html>"), "answered with no list of models"],
    ["lists nothing", async () => Response.json({ data: 3 }), "answered with no list of models"],
  ])("is 502 with a reason where every worker %s; /health stays 200", async (_, fetch, reason) => {
    const options = { routers: [], fallback: twoWorkers(), fetch };
    const { status, body, errors } = await get("/v1/models", options);
    expect(status).toBe(502);
    expect(body.error.code).toBe("upstream_failed");
    expect(body.error.message).toBe(`none of 2 workers lists its models; the last: worker 2 ${reason}`);
    expect(errors[0]!.details).toMatchObject({ workerId: "2", url: "http://two/" });
    expect((await get("/v1/models/llama", options)).status).toBe(502);
    expect((await get("/health", options)).status).toBe(200);
  });

  test("is 503 where there is no worker to ask", async () => {
    const { status, body } = await get("/v1/models", { routers: [], fallback: fakeRouter([]).router });
    expect(status).toBe(503);
    expect(body.error.code).toBe("no_endpoints");
  });

  test("lists what routers name although the fallback's workers are down", async () => {
    const down = () => Promise.reject(new TypeError("fetch failed"));
    expect(await list({ fallback: twoWorkers(), fetch: down })).toEqual(["m"]);
  });

  test.each(["org/x-1", "org%2Fx-1"])("/%s answers that model, of a worker", async (path) => {
    const fetch = async () => Response.json({ data: [{ id: "other" }, { id: "org/x-1", max_model_len: 9 }] });
    const { status, body } = await get(`/v1/models/${path}`, { routers: [], fallback: twoWorkers(), fetch });
    expect(status).toBe(200);
    expect(body).toEqual({ id: "org/x-1", max_model_len: 9 });
  });

  test("/{id} answers a named model, or 404 model_not_found", async () => {
    expect((await get("/v1/models/m", {})).body).toMatchObject({ id: "m", object: "model" });
    for (const id of ["n", "m/n", "%ff", "__proto__"]) {
      const { status, body } = await get(`/v1/models/${id}`, {});
      expect(status).toBe(404);
      expect(body.error).toMatchObject({ code: "model_not_found", type: "invalid_request_error", param: "model" });
    }
  });
});
