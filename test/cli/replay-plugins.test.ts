// `warmroute replay` with plugins.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { pluginFiles } from "./plugin-files.js";
import { cli } from "./server-process.js";

const { directory, path } = pluginFiles();
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const line = (id: number) => JSON.stringify({ timestamp: id * 10, output_length: 2, hash_ids: [id] });
writeFileSync(path("trace.jsonl"), [0, 1, 2, 3].map(line).join("\n"));

const catalog = ["--catalog", path("catalog.mjs")];
const replay = (...args: string[]) => {
  const all = ["replay", path("trace.jsonl"), "--workers", "4", "--json", ...args];
  return spawnSync(process.execPath, [cli, ...all], { encoding: "utf8" });
};
test("a policy from a catalog decides in the mode kv", () => {
  const decided = (out: string, ...args: string[]) => {
    const { status, stderr } = replay("--mode", "kv,round_robin", "--out", path(out), ...args);
    expect([status, stderr]).toEqual([0, ""]);
    const lines = readFileSync(path(`${out}/requests.jsonl`), "utf8")
      .trimEnd()
      .split("\n");
    const rows = lines.map(
      (text) => JSON.parse(text) as { mode: string; decode_worker_idx: number; decode_route_overlap_tokens?: number },
    );
    const told = rows.filter((row) => row.decode_route_overlap_tokens !== undefined).map(({ mode }) => mode);
    const of = (mode: string) => rows.filter((row) => row.mode === mode).map((row) => row.decode_worker_idx);
    return { kv: of("kv"), roundRobin: of("round_robin"), told: new Set(told) };
  };
  // It reads no caches, so there is no index and nothing to tell of overlaps.
  const custom = decided("custom", "--policy", path("last-worker.yaml"), ...catalog);
  expect(custom).toEqual({ kv: [3, 3, 3, 3], roundRobin: [0, 1, 2, 3], told: new Set() });
  // Four cold prompts, of which the last may come when the first has ended: the default policy spreads them.
  const usual = decided("default");
  expect(new Set(usual.kv).size).toBeGreaterThan(1);
  expect(usual.told).toEqual(new Set(["kv"]));
});

describe("is refused before anything is read or written", () => {
  test.each([
    [["--mode", "kv", "--policy", path("gate.yaml"), ...catalog], 1, "classifier_not_supported"],
    [["--mode", "kv", "--policy", path("decode.yaml"), ...catalog], 1, "role_not_served"],
    [["--mode", "kv", "--policy", path("last-worker.yaml")], 1, "unknown_type"],
    [["--mode", "kv", "--policy", path("misspelt.yaml")], 1, "unknown_key"],
    [["--mode", "random", "--policy", path("last-worker.yaml"), ...catalog], 2, "invalid_usage"],
    [["--mode", "random", ...catalog], 2, "invalid_usage"],
    [["--mode", "random", "--prefill-policy", "mine"], 2, "invalid_usage"],
    [["--mode", "random", "--decode-policy", "mine"], 2, "invalid_usage"],
  ])("%j", (args, code, error) => {
    const { status, stdout, stderr } = replay(...args, "--out", path("refused"));
    expect(status).toBe(code);
    expect(stdout).toBe("");
    expect(JSON.parse(stderr).error.code).toBe(error);
    expect(existsSync(path("refused"))).toBe(false);
  });
});
