import { describe, expect, test } from "vitest";
import "../../src/kernel/inlined.js";
import { createFrontend, HttpFrontend } from "../../src/frontend/index.js";
import { RouterPlugins } from "../../src/plugins.js";
import { createRouter } from "../../src/router/create-router.js";
import { fakeRouter } from "./fake-router.js";

const { router } = fakeRouter([{ workerId: "1" }]);

describe("the options of a frontend", () => {
  test.each([
    [undefined, "options"],
    [null, "options"],
    [[], "options"],
    [{ router }, "router"],
    [{ routers: router }, "routers"],
    [{ routers: [undefined] }, "routers[0]"],
    [{ routers: [{ model: "m" }] }, "routers[0].select"],
    [{ routers: [router, router] }, "routers[1]"],
    [{ routers: [router], models: [{ model: "m" }] }, "models[0]"],
    [{ models: [{ model: "a" }, { model: "a" }] }, "models[1]"],
    [{ models: [{}, {}] }, "models[1]"],
    [{ models: [{ blocksize: 5 }] }, "models[0].blocksize"],
    [{ models: ["m"] }, "models[0]"],
    [{ models: [{ model: "a" }, { model: "b", fetch }] }, "models[1].fetch"],
    [{ models: [{ clock: {} }] }, "models[0].clock.now"],
    [{ fallback: {} }, "fallback.select"],
    [{ fallback: 5 }, "fallback"],
    [{ tokenizer: {} }, "tokenizer.encode"],
    [{ fetch: "x" }, "fetch"],
    [{ maxBodyBytes: -1 }, "maxBodyBytes"],
    [{ maxBodyBytes: "8" }, "maxBodyBytes"],
    [{ onError: true }, "onError"],
    [{ onDecision: 5 }, "onDecision"],
  ])("%o is invalid_config", (options, path) => {
    const refused = expect.objectContaining({ code: "invalid_config", path });
    expect(() => new HttpFrontend(options as never)).toThrow(refused);
    expect(() => createFrontend(options as never)).toThrow(refused);
  });

  test.each([{}, null, "x"])("plugins %o are invalid_config", (plugins) => {
    const refused = expect.objectContaining({ code: "invalid_config", path: "plugins" });
    expect(() => createFrontend({ plugins: plugins as never })).toThrow(refused);
    expect(() => new HttpFrontend({}).plugins(plugins as never)).toThrow(refused);
  });

  test.each([
    [undefined, "options"],
    [{ plugins: new RouterPlugins() }, "plugins"],
    [{ blocksize: 5 }, "blocksize"],
  ])("addModel(%o) is invalid_config", async (options, path) => {
    const refused = expect.objectContaining({ code: "invalid_config", path });
    await expect(new HttpFrontend({}).addModel(options as never)).rejects.toThrow(refused);
  });

  test("are checked before a router takes part in anything", async () => {
    const decode = await createRouter({ model: "a" });
    expect(() => new HttpFrontend({ routers: [decode, decode] })).toThrow(/second router of the model a/);
    decode.addWorker({ workerId: "9", role: "decode" });
    await decode.close();
  });
});
