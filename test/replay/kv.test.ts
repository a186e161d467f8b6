import "../../src/kernel/inlined.js";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { Prompts } from "../../src/replay/prompts.js";
import { type ReplaySetup, replayMode } from "../../src/replay/replay.js";
import { readTrace } from "../../src/replay/trace.js";

interface Record {
  decode_worker_idx: number;
  reused_input_tokens: number;
  decode_route_overlap_tokens: number;
  routing_history: [
    { selected_overlap_blocks: number; best_available_overlap_blocks: number; overlap_regret_blocks: number },
  ];
}

async function setupOf(lines: Iterable<string>, overrides: Partial<ReplaySetup>): Promise<ReplaySetup> {
  const trace = await readTrace(lines);
  return { trace, prompts: new Prompts(trace, 64), workers: 4, blocks: 16_384, seed: 1n, speed: 1, ...overrides };
}

async function run(setup: ReplaySetup): Promise<Record[]> {
  return (await replayMode("kv", setup)).lines.map((line) => JSON.parse(line) as Record);
}

const prompt = (timestamp: number, first: number, n = 2): string =>
  JSON.stringify({
    ...{ timestamp, input_length: n * 512, output_length: 2 },
    hash_ids: Array.from({ length: n }, (_, i) => first + i),
  });

test("a prompt that repeats goes where its blocks are, and what the router saw is what the worker had", async () => {
  // Each arrives long after the one before it has finished.
  const lines = [0, 10, 20, 30].flatMap((round) => [prompt(round * 1000, 1), prompt(round * 1000 + 5000, 50)]);
  const [first, other, ...repeats] = await run(await setupOf(lines, {}));
  expect([first!.decode_route_overlap_tokens, other!.decode_route_overlap_tokens]).toEqual([0, 0]);
  repeats.forEach((record, i) => {
    expect(record.decode_worker_idx).toBe((i % 2 === 0 ? first : other)!.decode_worker_idx);
    // All 16 blocks are there; the last is computed again for its logits.
    expect(record.decode_route_overlap_tokens).toBe(1024);
    expect(record.reused_input_tokens).toBe(960);
    expect(record.routing_history[0]).toMatchObject({
      ...{ selected_overlap_blocks: 16, best_available_overlap_blocks: 16, overlap_regret_blocks: 0 },
    });
  });
});

test("blocks that a worker evicts are gone for the router too, from the tail on", async () => {
  // 24 blocks: the second prompt leaves 8 − 1 of the first one's 16, as its answer takes one.
  const lines = [prompt(0, 1), prompt(5000, 50), prompt(10_000, 1)];
  const records = await run(await setupOf(lines, { workers: 1, blocks: 24 }));
  expect(records.map((record) => record.decode_route_overlap_tokens)).toEqual([0, 0, 7 * 64]);
  expect(records.map((record) => record.reused_input_tokens)).toEqual([0, 0, 7 * 64]);
});

test("siblings of one instant are spread by load, for no event has come yet", async () => {
  const records = await run(
    await setupOf(
      Array.from({ length: 8 }, (_, i) => prompt(0, 1 + 10 * i)),
      {},
    ),
  );
  const counts = [0, 1, 2, 3].map((worker) => records.filter((r) => r.decode_worker_idx === worker).length);
  expect(counts).toEqual([2, 2, 2, 2]);
});

test("the sample trace: more reuse than by turns, and the same bytes each time", async () => {
  const sample = readFileSync(new URL("../../examples/sample-trace.jsonl", import.meta.url), "utf8").split("\n");
  const setup = await setupOf(sample, {});
  const [kv, again] = [await replayMode("kv", setup), await replayMode("kv", setup)];
  expect(kv.lines).toEqual(again.lines);
  expect(kv.summary()).toEqual(again.summary());
  const reused = kv.summary().prefix_cache_reused_ratio!;
  const byTurns = (await replayMode("round_robin", setup)).summary().prefix_cache_reused_ratio!;
  expect(reused).toBeGreaterThan(1.2 * byTurns);
  expect(reused).toBeLessThanOrEqual(setup.prompts.reusableTokens / setup.prompts.inputTokens);
});
