// The suite on Node, Deno, Bun and workerd: right by the golden files, and the same to the last byte on each.
import { createHash } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { golden } from "./golden.js";
import { findRuntime, launch, onWorkerd, type Runtime } from "./launch.js";
import type { SuiteDocument } from "./suite.js";

const runtimes: Runtime[] = ["node", "deno", "bun", "workerd"];

describe("the suite on Node", () => {
  let text = "";
  let document: SuiteDocument;
  beforeAll(async () => {
    text = await launch("node", process.execPath);
    document = JSON.parse(text).document;
  });

  test("hashes as the golden files", () => {
    const hashes = document.hashes.map(({ block_size, block_hashes, sequence_hashes }) => ({
      block_size,
      block_hashes,
      sequence_hashes,
    }));
    expect(golden.hashes).toMatchObject(hashes);
  });

  test("finds every block of the golden prompts by its block hash, and no other", () => {
    const expected = golden.hashes.map(({ block_hashes: { length } }) => [length, length - 1]);
    expect(document.hashes.map((row) => row.overlap)).toEqual(expected);
  });

  test("shares every active block of the golden prompts by its sequence hash, and no other", () => {
    expect(document.hashes.map((row) => row.added)).toEqual(golden.hashes.map(() => [0, 1]));
  });

  test("draws as the golden generators", () => {
    expect(document.draws).toEqual(
      golden.draws.generators.map(({ seed, ties_of_4, doubles }) => ({
        seed,
        of4: ties_of_4,
        of4096: doubles.map((u) => Math.floor(u * 4096)),
      })),
    );
  });

  test("explains the golden scenarios", () => {
    expect(document.explained).toHaveLength(golden.scenarios.length);
    document.explained.forEach(({ outcome, candidates }, i) => {
      const { expected } = golden.scenarios[i] ?? { expected: { outcome: "", candidates: [] } };
      expect(outcome).toBe(expected.outcome);
      expect(candidates.map((row) => row.worker_id)).toEqual(expected.candidates.map((row) => row.worker_id));
      candidates.forEach((row, n) => {
        for (const key of ["cost", "probability"] as const) {
          const right = expected.candidates[n]?.[key];
          if (right !== undefined) expect(Math.abs((row[key] ?? Number.NaN) - right)).toBeLessThanOrEqual(1e-9 * right);
        }
      });
    });
  });

  test("takes 100 decisions of every kind", () => {
    expect(document.decisions).toHaveLength(100);
    const reasons = new Set(document.decisions.map((decision) => decision.reason));
    expect([...reasons].sort()).toEqual(expect.arrayContaining(["cost", "pinned", "sampled"]));
    expect(document.decisions.filter((decision) => decision.overlap.deviceBlocks > 0).length).toBeGreaterThan(20);
  });

  test("goes on from a snapshot as if nothing had happened", () => {
    expect(document.snapshot).toMatchObject({ equal: true, continues: true });
  });

  test("states the digest of its document", () => {
    const { digest } = JSON.parse(text);
    expect(createHash("sha256").update(JSON.stringify(document)).digest("hex")).toBe(digest);
  });

  test.for(runtimes.filter((name) => name !== "node"))("is the same to the last byte on %s", async (name, { skip }) => {
    const program = findRuntime(name);
    if (!program && !process.env.CI) skip(`the package with ${name} for this platform is not installed`);
    expect(program, `the package with ${name} for this platform`).toBeDefined();
    if (program) expect(await launch(name, program)).toBe(text);
  });
});

test("on workerd a request waits for what another one frees, each in its own context", async ({ skip }) => {
  const program = findRuntime("workerd");
  if (!program && !process.env.CI) skip("the package with workerd for this platform is not installed");
  await onWorkerd(program!, "queue", async (get) => {
    const json = async (path: string) => JSON.parse(await get(path));
    expect(await json("/outside")).toMatch(/create the router within a request, or give it a seed$/);
    expect(await json("/select/first")).toEqual({ worker: "1", waited: false });
    const second = json("/select/second");
    const third = json("/select/third");
    await expect.poll(() => json("/stats"), { timeout: 5000 }).toEqual({ pending: 2 });
    await json("/free/first");
    expect(await second).toEqual({ worker: "1", waited: true });
    expect(await json("/free/second")).toEqual({ pending: 0 });
    expect(await third).toEqual({ worker: "1", waited: true });
  });
});
