import "../../src/kernel/inlined.js";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { Prompts } from "../../src/replay/prompts.js";
import { replayMode } from "../../src/replay/replay.js";
import { readTrace } from "../../src/replay/trace.js";

const path = fileURLToPath(new URL("../../../shared/traces/mooncake-conversation.jsonl", import.meta.url));
const present = existsSync(path);

describe.skipIf(!present)(
  `the Mooncake conversation trace${present ? "" : ` (skipped: there is no ../shared/traces)`}`,
  () => {
    test("kv reuses at least twice as much as round robin, and neither more than there is", {
      timeout: 240_000,
    }, async () => {
      const lines = readFileSync(path, "utf8").trimEnd().split("\n");
      const trace = await readTrace(lines);
      const prompts = new Prompts(trace, 64);
      const reused: Record<string, number> = {};
      for (const mode of ["kv", "round_robin"]) {
        const setup = { trace, prompts, workers: 8, blocks: 16_384, seed: 1n, speed: 1 };
        const summary = (await replayMode(mode, setup)).summary();
        expect(summary.completed_requests).toBe(12_031);
        expect(summary.total_input_tokens).toBe(144_793_823);
        expect(summary.total_output_tokens).toBe(4_122_048);
        reused[mode] = summary.prefix_cache_reused_ratio!;
      }
      const ceiling = reusableRatio(lines);
      expect(ceiling).toBeCloseTo(0.3736, 4);
      expect(reused.kv).toBeLessThanOrEqual(ceiling);
      expect(reused.kv).toBeGreaterThanOrEqual(2 * reused.round_robin!);
    });
  },
);

/** Share of input tokens in leading hash ids that an earlier line began with, straight from the file. */
function reusableRatio(lines: readonly string[]): number {
  const seen = new Set<number>();
  let reusable = 0;
  let total = 0;
  for (const line of lines) {
    const { input_length, hash_ids } = JSON.parse(line) as { input_length: number; hash_ids: number[] };
    // In this trace an id stands for its whole prefix, so it is known by itself.
    const first = hash_ids.findIndex((id) => !seen.has(id));
    reusable += Math.min((first < 0 ? hash_ids.length : first) * 512, input_length);
    total += input_length;
    for (const id of hash_ids) seen.add(id);
  }
  return reusable / total;
}
