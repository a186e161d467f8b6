// init() as a new process meets it: each test loads the module anew, so that nothing is compiled yet.
import { readFileSync } from "node:fs";
import { beforeEach, describe, expect, it, vi } from "vitest";

type Loader = typeof import("../../src/kernel/module.js");

const wasm = new URL("../../build/kernel.wasm", import.meta.url);
const bytes = (): Uint8Array<ArrayBuffer> => Uint8Array.from(readFileSync(wasm));
const compiled = (): WebAssembly.Module => new WebAssembly.Module(bytes());
const response = (): Response => new Response(bytes(), { headers: { "content-type": "application/wasm" } });
const missing = expect.objectContaining({ code: "kernel_missing" });

let loader: Loader;

beforeEach(async () => {
  vi.resetModules();
  loader = await import("../../src/kernel/module.js");
});

/** The names that the kernel is used by. */
function expectKernel(module: WebAssembly.Module): void {
  const names = WebAssembly.Module.exports(module).map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["memory", "init", "hashPrompt", "decide", "storeEvent"]));
}

describe("init()", () => {
  it("needs a source where nothing is inlined", async () => {
    await expect(loader.init()).rejects.toEqual(missing);
    expect(() => loader.kernelModule()).toThrowError(missing);
  });

  it.each<[string, () => Parameters<Loader["init"]>[0]]>([
    ["a module", compiled],
    ["bytes", bytes],
    ["a buffer", () => bytes().buffer],
    ["a response", response],
    ["a promise of a module", () => Promise.resolve(compiled())],
    ["a promise of bytes", () => Promise.resolve(bytes())],
    ["a promise of a response", () => Promise.resolve(response())],
  ])("takes %s", async (_, source) => {
    await loader.init(source());
    expectKernel(loader.kernelModule());
  });

  it("keeps the very module that it was given", async () => {
    const module = compiled();
    await loader.init(module);
    expect(loader.kernelModule()).toBe(module);
  });

  it("is idempotent: what comes later changes nothing", async () => {
    const module = compiled();
    await loader.init(module);
    await loader.init();
    await loader.init(compiled());
    await loader.init(Uint8Array.of(1, 2, 3));
    await loader.init(response());
    expect(loader.kernelModule()).toBe(module);
  });

  it("may be called twice at once", async () => {
    await Promise.all([loader.init(bytes()), loader.init(Promise.resolve(response()))]);
    const module = loader.kernelModule();
    expectKernel(module);
    await loader.init(compiled());
    expect(loader.kernelModule()).toBe(module);
  });

  it.each<[string, () => unknown]>([
    ["bytes that are no module", () => Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8)],
    ["no bytes", () => new Uint8Array(0)],
    ["half of the kernel", () => bytes().subarray(0, 1000)],
    ["a page that was not found", () => new Response("not found", { status: 404 })],
    ["a response that was read already", readResponse],
    ["a promise that is rejected", () => Promise.reject(new TypeError("fetch failed"))],
    ["a text", () => "kernel.wasm"],
    ["another module", () => Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0)],
    ["null", () => null],
  ])("refuses %s with kernel_missing and its cause, and a good source works afterwards", async (_, source) => {
    const error = await loader.init(source() as Parameters<Loader["init"]>[0]).catch((thrown: unknown) => thrown);
    expect(error).toEqual(missing);
    expect((error as Error).cause).toBeInstanceOf(Error);
    expect(() => loader.kernelModule()).toThrowError(missing);
    await loader.init(bytes());
    expectKernel(loader.kernelModule());
  });

  it("makes routers: those of the same loading work with what was given", async () => {
    const { createRouter } = await import("../../src/router/create-router.js");
    await expect(createRouter({ blockSize: 4, workers: [{ workerId: "1" }] })).rejects.toEqual(missing);
    await loader.init(response());
    const router = await createRouter({ blockSize: 4, workers: [{ workerId: "1" }] });
    expect(await router.select({ tokens: [1, 2, 3, 4] })).toMatchObject({ worker: { workerId: "1", dpRank: 0 } });
  });

  it("is not needed where the bytes are inlined, and takes a module in their place", async () => {
    await import("../../src/kernel/inlined.js");
    await loader.init();
    expectKernel(loader.kernelModule());
    vi.resetModules();
    const again: Loader = await import("../../src/kernel/module.js");
    await import("../../src/kernel/inlined.js");
    const module = compiled();
    await again.init(module);
    expect(again.kernelModule()).toBe(module);
  });
});

function readResponse(): Response {
  const read = response();
  void read.arrayBuffer();
  return read;
}
