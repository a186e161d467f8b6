import { expect, test } from "vitest";
import { generateTrace } from "../../src/replay/generate.js";
import { Prompts } from "../../src/replay/prompts.js";
import { readTrace } from "../../src/replay/trace.js";

const lines = (seed: bigint, requests = 200, sessions = 40): string[] => [
  ...generateTrace({ seed, requests, sessions, systemPrompts: 5 }),
];

test("equal options make equal bytes, another seed another trace", () => {
  expect(lines(3n)).toEqual(lines(3n));
  expect(lines(3n)).not.toEqual(lines(4n));
});

test("the trace can be read, and is as large as asked for", async () => {
  const { requests, skipped } = await readTrace(lines(1n));
  expect(requests).toHaveLength(200);
  expect(skipped).toEqual([]);
  expect(new Set(requests.map((request) => request.sessionId)).size).toBe(40);
  expect(await readTrace(lines(1n, 30, 30))).toMatchObject({ requests: { length: 30 } });
});

test("lines are in order of time, and hash ids numbered by first appearance", () => {
  const raw = lines(2n).map((line) => JSON.parse(line) as { timestamp: number; hash_ids: number[] });
  expect(raw.map((line) => line.timestamp)).toEqual(raw.map((line) => line.timestamp).sort((a, b) => a - b));
  const appeared = [...new Set(raw.flatMap((line) => line.hash_ids))];
  expect(appeared).toEqual(appeared.map((_, i) => i));
});

test("a session that would exceed the longest prompt begins anew from its system prompt", () => {
  const raw = lines(1n, 600, 1).map((line) => JSON.parse(line) as { input_length: number; hash_ids: number[] });
  const longest = Math.max(...raw.map((line) => line.input_length));
  expect(longest).toBeLessThanOrEqual(131_072);
  expect(longest).toBeGreaterThan(120_000);
  const anew = raw.findIndex((line, i) => i > 0 && line.input_length < raw[i - 1]!.input_length);
  expect(raw[anew]!.hash_ids[0]).toBe(raw[0]!.hash_ids[0]);
  expect(raw[anew]!.hash_ids).toHaveLength(Math.ceil(raw[anew]!.input_length / 512));
  expect(raw[anew]!.hash_ids.at(-1)).toBeGreaterThan(raw[anew - 1]!.hash_ids.at(-1)!);
});

test("each turn repeats all full blocks of the turn before, and sessions share beginnings", async () => {
  const trace = await readTrace(lines(1n));
  for (const { hashIds, inputTokens, outputTokens, next } of trace.requests) {
    expect(hashIds).toHaveLength(Math.ceil(inputTokens / 512));
    if (next === undefined) continue;
    const full = Math.floor(inputTokens / 512);
    const after = trace.requests[next]!;
    expect([...after.hashIds.subarray(0, full)]).toEqual([...hashIds.subarray(0, full)]);
    expect(after.inputTokens).toBeGreaterThan(inputTokens + outputTokens);
    expect(after.delayMs).toBeGreaterThanOrEqual(2000);
  }
  const first = new Set(trace.requests.map((request) => request.hashIds[0]));
  expect(first.size).toBeLessThanOrEqual(5);
  const prompts = new Prompts(trace, 64);
  expect(prompts.reusableTokens / prompts.inputTokens).toBeGreaterThan(0.5);
});
