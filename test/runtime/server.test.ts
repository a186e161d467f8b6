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
