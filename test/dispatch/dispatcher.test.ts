import { describe, expect, test } from "vitest";
import { Dispatcher, type DispatchTarget, joinUrl, responseHeaders } from "../../src/dispatch/index.js";

const target: DispatchTarget = { workerId: "7", dpRank: 3, url: "http://w:8000", engine: "vllm", dpSize: 4 };

/** Sends one request through a recording `fetch`. */
async function sent(to: DispatchTarget, headers: Record<string, string> = {}) {
  const seen: { url: string; init: RequestInit }[] = [];
  const dispatcher = new Dispatcher({
    fetch: async (url, init) => {
      seen.push({ url, init });
      return new Response("ok");
    },
  });
  const body = new TextEncoder().encode('{ "prompt" : "a" }');
  await dispatcher.send(to, { path: "/v1/completions?x=1", method: "POST", headers: new Headers(headers), body });
  expect(seen).toHaveLength(1);
  return { url: seen[0]!.url, body: seen[0]!.init.body, headers: new Headers(seen[0]!.init.headers) };
}

describe("a dispatch", () => {
  test("goes to the worker's url with the body untouched", async () => {
    const { url, body } = await sent(target);
    expect(url).toBe("http://w:8000/v1/completions?x=1");
    expect(new TextDecoder().decode(body as Uint8Array)).toBe('{ "prompt" : "a" }');
  });

  test.each([
    ["vllm", 4, "3"],
    ["vllm", 1, null],
    ["auto", 4, null],
    ["sglang", 4, null],
    ["openai", 4, null],
  ] as const)("engine %s with %i ranks names the rank as %s", async (engine, dpSize, expected) => {
    const { headers } = await sent({ ...target, engine, dpSize }, { "X-Data-Parallel-Rank": "1" });
    expect(headers.get("x-data-parallel-rank")).toBe(expected);
  });

  test("keeps the message's headers and drops the connection's", async () => {
    const { headers } = await sent(target, {
      authorization: "Bearer k",
      "x-request-id": "r1",
      connection: "close, x-hop",
      "x-hop": "1",
      host: "router",
      "content-length": "5",
      "accept-encoding": "gzip",
      "transfer-encoding": "chunked",
    });
    expect(Object.fromEntries(headers)).toMatchObject({
      authorization: "Bearer k",
      "x-request-id": "r1",
      "accept-encoding": "identity",
    });
    for (const gone of ["connection", "x-hop", "host", "content-length", "transfer-encoding"]) {
      expect(headers.has(gone), gone).toBe(false);
    }
  });

  test("turns an unreachable worker into upstream_failed, without the url's credentials", async () => {
    const dispatcher = new Dispatcher({
      fetch: () => Promise.reject(new TypeError("fetch failed", { cause: { code: "ECONNREFUSED" } })),
    });
    const request = { path: "/v1/models", method: "GET", headers: new Headers() };
    const withPassword = { ...target, url: "http://u:secret@w:8000/base" };
    await expect(dispatcher.send(withPassword, request)).rejects.toMatchObject({
      code: "upstream_failed",
      status: 502,
      message: "worker 7 did not answer",
      details: { workerId: "7", url: "http://w:8000/base", reason: "ECONNREFUSED" },
    });
    await expect(dispatcher.send({ ...target, url: undefined }, request)).rejects.toMatchObject({
      code: "upstream_failed",
    });
  });

  test("rejects with the client's reason when the client left", async () => {
    const gone = new AbortController();
    gone.abort(new Error("client left"));
    const dispatcher = new Dispatcher({ fetch: (_, init) => Promise.reject(init.signal?.reason) });
    await expect(
      dispatcher.send(target, { path: "/", method: "GET", headers: new Headers(), signal: gone.signal }),
    ).rejects.toThrow("client left");
  });
});

test.each([
  ["http://w:1", "http://w:1/v1/models"],
  ["http://w:1/", "http://w:1/v1/models"],
  ["http://w:1/v1", "http://w:1/v1/models"],
  ["http://w:1/base/v1/", "http://w:1/base/v1/models"],
])("base %s", (base, url) => expect(joinUrl(base, "/v1/models")).toBe(url));

test("an answer that fetch has decompressed loses its encoding and length", () => {
  const kept = responseHeaders(
    new Headers({ "content-encoding": "gzip", "content-length": "9", "content-type": "a/b", connection: "close" }),
  );
  expect(Object.fromEntries(kept)).toEqual({ "content-type": "a/b" });
});
