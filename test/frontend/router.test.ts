import { afterEach, describe, expect, test } from "vitest";
import "../../src/kernel/inlined.js";
import { createFrontend } from "../../src/frontend/index.js";
import { createRouter } from "../../src/router/create-router.js";
import type { KvRouter } from "../../src/router/kv-router.js";
import { startServer } from "../../src/runtime/node/index.js";
import { MockWorker } from "../../src/testing/index.js";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A router over mock workers, all over HTTP. */
async function setUp(workers: number, speedUp: number) {
  const router = await createRouter({ model: "mock", seed: 1n });
  for (let i = 1; i <= workers; i++) {
    const mock = new MockWorker({ workerId: i, speedUp, onKvEvent: (event) => void router.applyEvent(event) });
    const server = await startServer({ fetch: mock.fetch, port: 0 });
    closers.push(() => server.close());
    router.addWorker({ workerId: mock.workerId, url: server.url });
  }
  const { url, close } = await startServer({ fetch: createFrontend({ routers: [router] }).fetch, port: 0 });
  closers.push(close);
  return { router, url };
}

const chat = (url: string, messages: object[], init: { signal?: AbortSignal; stream?: boolean } = {}) =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "mock", messages, stream: init.stream ?? false }),
    ...(init.signal ? { signal: init.signal } : {}),
  });

const idle = (router: KvRouter) =>
  router.loads().every((row) => row.activePrefillTokens + row.activeDecodeBlocks + row.activeRequests === 0);

const untilIdle = async (router: KvRouter) => {
  for (let i = 0; i < 500 && !idle(router); i++) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(router.loads().filter((row) => row.activeRequests > 0)).toEqual([]);
  expect(idle(router)).toBe(true);
  expect(router.stats().bookings.live).toBe(0);
};

const system = { role: "system", content: "You help people who know what they want. ".repeat(40) };

describe("the frontend with a real router", () => {
  test("requests that share a prefix land on the worker that has it", async () => {
    const { router, url } = await setUp(4, 100);
    const seen = [];
    for (const content of ["What is a block?", "What is a rank?", "What is a probe?"]) {
      const answer = await chat(url, [system, { role: "user", content }]);
      await answer.text();
      const header = (name: string) => answer.headers.get(`x-warmroute-${name}`);
      seen.push([header("worker"), Number(header("overlap-blocks")), header("dp-rank"), header("evidence")]);
    }
    const worker = seen[0]![0];
    // "system" and the 1,640 bytes of its text fill 25 blocks of 64.
    expect(seen).toEqual([
      [worker, 0, "0", "none"],
      [worker, 25, "0", "approximate"],
      [worker, 25, "0", "approximate"],
    ]);
    await untilIdle(router);
  });

  test("C23: start 100, abort 100 at random points: all loads are 0", async () => {
    const { router, url } = await setUp(4, 5);
    let aborted = 0;
    const clients = Array.from({ length: 100 }, async (_, i) => {
      const leave = new AbortController();
      // A reply has some 25 chunks: some clients leave before the first, some after the last.
      const leaveAfter = (i * 61) % 30;
      const messages = [system, { role: "user", content: `Question ${i % 10}, `.repeat(i) }];
      const answer = await chat(url, messages, { signal: leave.signal, stream: true });
      const reader = answer.body!.getReader();
      for (let read = 0; ; read++) {
        if (read === leaveAfter) {
          aborted++;
          return leave.abort();
        }
        if ((await reader.read()).done) return;
      }
    });
    await Promise.all(clients);
    expect(aborted).toBeGreaterThan(20);
    expect(router.stats().decisions).toBe(100);
    await untilIdle(router);
  });

  test("a router without workers answers 503 and recovers when one comes", async () => {
    const { router, url } = await setUp(0, 1);
    const refused = await chat(url, [system]);
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(((await refused.json()) as { error: { code: string } }).error.code).toBe("no_endpoints");
    const mock = await startServer({ fetch: new MockWorker({ workerId: 9, speedUp: 100 }).fetch, port: 0 });
    closers.push(() => mock.close());
    router.addWorker({ workerId: 9, url: mock.url });
    expect((await chat(url, [system])).headers.get("x-warmroute-worker")).toBe("9");
    await untilIdle(router);
  });
});
