// The soak, for a moment: that it runs, and finds nothing.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const soak = fileURLToPath(new URL("../scripts/soak.mjs", import.meta.url));
const run = async (...options: string[]) =>
  (await promisify(execFile)(process.execPath, ["--expose-gc", soak, ...options])).stdout;

test("random requests leave nothing behind", async () => {
  const said = await run("--minutes", "0.05");
  expect(said).toMatch(/^0 s to go: \d{3,} lifecycles, 0 live, 0 waiting, /m);
  expect(said).toMatch(/^nothing is left$/m);
});

test("equal requests leave the heap as it was", async () => {
  const said = await run("--lifecycles", "20000", "--every", "5000");
  expect(said.match(/^\d+ lifecycles: heap /gm)).toHaveLength(4);
  expect(said).toMatch(/^nothing is left$/m);
});
