import { expect, test } from "vitest";
import { startServer } from "../../src/runtime/node/index.js";

test.each(["", " "])("the host %j is refused: Node would listen on all addresses", async (host) => {
  await expect(startServer({ fetch: () => new Response(), port: 0, host })).rejects.toMatchObject({
    code: "invalid_usage",
    path: "host",
  });
});

test("a server says where it listens, and closes", async () => {
  const server = await startServer({ fetch: () => new Response("ok"), port: 0 });
  expect(server.url).toBe(`http://127.0.0.1:${server.port}`);
  expect(await (await fetch(server.url)).text()).toBe("ok");
  await server.close();
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
  const closing = server.close({ graceMs: 60_000 }).then(() => {
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
