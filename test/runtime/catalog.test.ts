import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { loadCatalog } from "../../src/runtime/node/catalog.js";

let directory: string;
const write = (name: string, text: string) => {
  const file = join(directory, name);
  writeFileSync(file, text);
  return file;
};
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "warmroute-catalog-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

test("a catalog that never finishes loading is refused", async () => {
  const file = write("stuck.mjs", "await new Promise(() => {});\nexport const register = () => {};\n");
  await expect(loadCatalog(file, { timeoutMs: 50 })).rejects.toMatchObject({
    code: "invalid_plugin",
    path: file,
    message: expect.stringContaining("never finishes loading"),
  });
});

test("one that takes its time is not, and leaves no timer behind", async () => {
  const file = write(
    "slow.mjs",
    "await new Promise((done) => setTimeout(done, 20));\nexport const register = () => 7;\n",
  );
  const clear = vi.spyOn(globalThis, "clearTimeout");
  try {
    expect(await loadCatalog(file)).toHaveProperty("register");
    expect(clear).toHaveBeenCalledOnce();
  } finally {
    clear.mockRestore();
  }
});

describe("one that throws what cannot be shown", () => {
  const rows = [
    ["bare", "Object.create(null)", "an object"],
    ["silent", "new Error()", "an error without a message"],
    ["odd", "Object.assign(new Error(), { message: Symbol() })", "an error without a message"],
    ["proxy", "new Proxy({}, { get() { throw 1; }, getPrototypeOf() { throw 1; } })", "an object"],
  ] as const;
  test.each(rows)("%s", async (name, thrown, shown) => {
    const file = write(`${name}.mjs`, `throw ${thrown};\n`);
    await expect(loadCatalog(file)).rejects.toMatchObject({
      code: "invalid_plugin",
      message: expect.stringMatching(new RegExp(`fails to load: ${shown}$`)),
    });
  });
});
