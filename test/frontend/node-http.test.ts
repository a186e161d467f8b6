import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { createFrontend } from "../../src/frontend/index.js";
import { type RunningServer, startServer } from "../../src/runtime/node/index.js";
import { fakeRouter } from "./fake-router.js";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function upstreamServer(answer: (incoming: IncomingMessage, outgoing: ServerResponse) => void) {
  const server: Server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function routerServer(workerUrl: string) {
  const fake = fakeRouter([{ workerId: "1", url: workerUrl }]);
  const errors: [unknown, string][] = [];
  const frontend = createFrontend({ routers: [fake.router], onError: (...error) => errors.push(error) });
  const server: RunningServer = await startServer({ fetch: frontend.fetch, port: 0 });
  closers.push(() => server.close());
  return { ...fake, errors, url: server.url };
}

const post = (url: string, signal?: AbortSignal, requestId = "") =>
  fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-request-id": requestId },
    body: JSON.stringify({ model: "m", prompt: "a", stream: true }),
    ...(signal ? { signal } : {}),
  });

const until = async (condition: () => boolean) => {
  for (let i = 0; i < 500 && !condition(); i++) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(condition()).toBe(true);
};

describe("over real HTTP", () => {
  test("a stream arrives byte for byte, each chunk as soon as it is sent", async () => {
    const events = ["data: {}\n", "\ndata: 🙂", "\n\n", ": comment\r\n\r\n", "data: [DONE]\n\n"];
    let next: () => void = () => {};
    const worker = await upstreamServer((incoming, outgoing) => {
      incoming.resume();
      outgoing.writeHead(200, { "content-type": "text/event-stream", "x-worker-own": "kept" });
      outgoing.flushHeaders();
      const rest = [...events];
      next = () => {
        const event = rest.shift();
        if (event === undefined) outgoing.end();
        else outgoing.write(event);
      };
    });
    const { url, ended } = await routerServer(worker);
    const answer = await post(url);
    expect(answer.headers.get("content-type")).toBe("text/event-stream");
    expect(answer.headers.get("x-worker-own")).toBe("kept");
    const reader = answer.body!.getReader();
    for (const event of events) {
      next();
      // Would wait for ever if anything on the way held it back.
      expect(Buffer.from((await reader.read()).value!).toString()).toBe(event);
    }
    next();
    expect((await reader.read()).done).toBe(true);
    await until(() => ended.length === 1);
    expect(ended).toEqual(["complete"]);
  });

  test("a slow reader holds the worker back", async () => {
    let written = 0;
    const worker = await upstreamServer((incoming, outgoing) => {
      incoming.resume();
      const chunk = Buffer.alloc(64 * 1024);
      const pump = () => {
        if (outgoing.destroyed) return;
        written += chunk.length;
        if (outgoing.write(chunk)) setImmediate(pump);
        else outgoing.once("drain", pump);
      };
      pump();
    });
    const { url, live } = await routerServer(worker);
    const client = request(`${url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
    });
    client.end(JSON.stringify({ model: "m", prompt: "a" }));
    const answer = await new Promise<IncomingMessage>((resolve) => client.once("response", resolve));
    answer.pause();
    await new Promise((resolve) => setTimeout(resolve, 300));
    const stalledAt = written;
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(written).toBe(stalledAt);
    expect(written).toBeLessThan(64 * 1024 * 1024);
    client.destroy();
    await until(() => live.size === 0);
  });

  test("a stream that the worker cuts is cut for the client, released, and told once", async () => {
    const worker = await upstreamServer((incoming, outgoing) => {
      incoming.resume();
      outgoing.write("data: half");
      setTimeout(() => outgoing.destroy(), 20);
    });
    const { url, ended, errors } = await routerServer(worker);
    await expect(post(url, undefined, "r1").then((answer) => answer.text())).rejects.toThrow();
    await until(() => ended.length === 1);
    expect(ended).toEqual(["abort"]);
    const error = { code: "upstream_failed", message: "worker 1 broke its answer off", cause: expect.any(Error) };
    expect(errors).toEqual([[expect.objectContaining(error), "r1"]]);
  });

  test("a worker that cannot be reached is 502", async () => {
    const { url, ended } = await routerServer("http://127.0.0.1:1");
    const answer = await post(url);
    expect(answer.status).toBe(502);
    expect(((await answer.json()) as { error: { code: string } }).error.code).toBe("upstream_failed");
    expect(ended).toEqual(["abort"]);
  });

  test("a client that leaves ends the worker's request, before the first byte and after", async () => {
    const open = new Set<ServerResponse>();
    const worker = await upstreamServer((incoming, outgoing) => {
      open.add(outgoing);
      outgoing.on("close", () => open.delete(outgoing));
      incoming.on("data", () => {}).on("end", () => begin && outgoing.write("x"));
    });
    let begin = false;
    const { url, ended, live, errors } = await routerServer(worker);
    for (begin of [false, true]) {
      const leave = new AbortController();
      const answer = post(url, leave.signal);
      answer.catch(() => {});
      await until(() => open.size === 1);
      if (begin) await (await answer).body!.getReader().read();
      leave.abort();
      await until(() => open.size === 0 && live.size === 0);
    }
    expect(ended).toEqual(["abort", "abort"]);
    expect(errors).toEqual([]);
  });

  test("C23: 100 requests, 100 aborts at random points: nothing stays behind", async () => {
    const worker = await upstreamServer((incoming, outgoing) => {
      incoming.resume();
      let left = 20;
      const timer = setInterval(() => {
        if (left-- > 0) outgoing.write("data: x\n\n");
        else outgoing.end();
      }, 5);
      outgoing.on("close", () => clearInterval(timer));
    });
    const { url, requests, ended, live } = await routerServer(worker);
    // Points spread over the life of a request: some before the headers, most in the stream, some never.
    const clients = Array.from({ length: 100 }, async (_, i) => {
      const leave = new AbortController();
      const leaveAfter = (i * 37) % 25;
      const answering = post(url, leave.signal, `r${i}`);
      answering.catch(() => {});
      if (leaveAfter === 0) {
        await until(() => requests.some(({ requestId }) => requestId === `r${i}`));
        leave.abort();
        return;
      }
      const reader = (await answering).body!.getReader();
      for (let read = 1; !(await reader.read()).done; read++) {
        if (read === leaveAfter) return leave.abort();
      }
    });
    await Promise.all(clients);
    await until(() => live.size === 0);
    expect(requests).toHaveLength(100);
    expect(ended).toHaveLength(100);
    expect(ended.filter((how) => how === "abort").length).toBeGreaterThan(20);
  });

  test("a taken port is a typed error", async () => {
    const { url } = await routerServer("http://127.0.0.1:1");
    const port = Number(new URL(url).port);
    await expect(startServer({ fetch: () => new Response(), port })).rejects.toMatchObject({
      code: "port_in_use",
      details: { port, host: "127.0.0.1" },
    });
  });
});
