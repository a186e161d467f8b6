import { expect, test } from "vitest";
import { startServer, toNodeHandler } from "../../src/runtime/node/index.js";

test.each([
  [{ host: "" }, "host"],
  [{ host: " " }, "host"],
  [{ host: 5 }, "host"],
  [{ port: undefined }, "port"],
  [{ port: "80" }, "port"],
  [{ port: -1 }, "port"],
  [{ port: 65_536 }, "port"],
  [{ port: 1.5 }, "port"],
  [{ fetch: undefined }, "fetch"],
  [{ fetch: "x" }, "fetch"],
  [{ hots: "127.0.0.1" }, "hots"],
])("%j is invalid_config", async (change, path) => {
  const options = { fetch: () => new Response(), port: 0, ...change };
  await expect(startServer(options as never)).rejects.toMatchObject({ code: "invalid_config", path });
});

test.each([
  [undefined, "handler"],
  [{}, "handler.fetch"],
  [() => new Response(), "handler"],
])("toNodeHandler(%o) is invalid_config", (handler, path) => {
  expect(() => toNodeHandler(handler as never)).toThrow(expect.objectContaining({ code: "invalid_config", path }));
});

test("an address that is none is cannot_listen", async () => {
  await expect(startServer({ fetch: () => new Response(), port: 0, host: "256.1.1.1" })).rejects.toMatchObject({
    code: "cannot_listen",
    details: { host: "256.1.1.1", port: 0 },
  });
});

test("closing says how many requests it cut, and refuses a grace that is none", async () => {
  let taken = 0;
  const handler = () => {
    taken++;
    return new Promise<Response>(() => {});
  };
  const server = await startServer({ fetch: handler, port: 0 });
  const asked = [1, 2].map(() => fetch(server.url).catch(() => "cut"));
  await expect.poll(() => taken).toBe(2);
  await expect(server.close({ graceMs: -1 })).rejects.toMatchObject({ code: "invalid_request", path: "graceMs" });
  expect(await server.close({ graceMs: 20 })).toBe(2);
  expect(await Promise.all(asked)).toEqual(["cut", "cut"]);
});

test("a server says where it listens, and closes", async () => {
  const server = await startServer({ fetch: () => new Response("ok"), port: 0 });
  expect(server.url).toBe(`http://127.0.0.1:${server.port}`);
  expect(await (await fetch(server.url)).text()).toBe("ok");
  expect(await server.close()).toBe(0);
  await expect(fetch(server.url)).rejects.toThrow();
});

test("closing waits for what is in flight, and no longer than that for connections that are kept alive", async () => {
  let answer!: (response: Response) => void;
  let taken!: () => void;
  const inFlight = new Promise<void>((resolve) => {
    taken = resolve;
  });
  const handler = () => {
    taken();
    return new Promise<Response>((resolve) => {
      answer = resolve;
    });
  };
  const server = await startServer({ fetch: handler, port: 0 });
  const asked = fetch(server.url);
  await inFlight;
  let closed = false;
  const closing = server.close({ graceMs: 2 ** 40 }).then(() => {
    closed = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(closed).toBe(false);
  answer(new Response("ok"));
  expect(await (await asked).text()).toBe("ok");
  const before = performance.now();
  await closing;
  // Node keeps an idle connection for five seconds.
  expect(performance.now() - before).toBeLessThan(1500);
});
