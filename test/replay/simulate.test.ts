import { describe, expect, test } from "vitest";
import { Prompts } from "../../src/replay/prompts.js";
import { type ReplaySetup, replayMode } from "../../src/replay/replay.js";
import { readTrace } from "../../src/replay/trace.js";

type Line = Record<string, unknown>;

async function setupOf(lines: Line[], overrides: Partial<ReplaySetup> = {}): Promise<ReplaySetup> {
  const trace = await readTrace(lines.map((line) => JSON.stringify(line)));
  const prompts = new Prompts(trace, 64);
  return { trace, prompts, workers: 1, blocks: 16_384, seed: 1n, speed: 1, ...overrides };
}

async function run(mode: string, setup: ReplaySetup): Promise<Record<string, unknown>[]> {
  return (await replayMode(mode, setup)).lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

const ids = (first: number, n: number): number[] => Array.from({ length: n }, (_, i) => first + i);

/** Worked out by hand from the polynomials of spec: scheduling.md §8.4; see the comment at each line. */
const handMade: Line[] = [
  // Prefill of 1,024 tokens: 32.491 ms. Then 17 blocks in use: two decode steps of 5.796 ms.
  { timestamp: 0, input_length: 1024, output_length: 3, hash_ids: ids(1, 2) },
  // The same prompt: 15 of 16 blocks are reused, the last is computed again: 64 tokens, 17.475 ms.
  { timestamp: 100, input_length: 1024, output_length: 1, hash_ids: ids(1, 2) },
  // Prefill of 2,048 tokens: 49.363 ms; then see the next request.
  { timestamp: 200, input_length: 2048, output_length: 2, hash_ids: ids(3, 4) },
  // Waits for that pass until 249.363; then 512 tokens beside a decode step with 41 blocks: 24.386 + 5.875 = 30.261 ms;
  // then alone with 9 blocks: 5.770 ms.
  { timestamp: 210, input_length: 512, output_length: 2, hash_ids: ids(7, 1) },
  // Two chunks: 8,192 tokens in 169.137 ms and 1,808 in 45.329 ms.
  { timestamp: 300, input_length: 10_000, output_length: 1, hash_ids: ids(10, 20) },
];

test("a small trace happens exactly as worked out by hand", async () => {
  const setup = await setupOf(handMade);
  const records = await run("round_robin", setup);
  const fields = [
    ...["arrival_time_ms", "first_admit_ms", "first_token_ms", "last_token_ms", "terminal_time_ms"],
    ...["ttft_ms", "e2e_latency_ms", "reused_input_tokens", "output_length"],
  ];
  expect(records.map((record) => fields.map((field) => record[field]))).toEqual([
    [0, 0, 32.491, 44.083, 44.083, 32.491, 44.083, 0, 3],
    [100, 100, 117.475, 117.475, 117.475, 17.475, 17.475, 960, 1],
    [200, 200, 249.363, 279.624, 279.624, 49.363, 79.624, 0, 2],
    [210, 249.363, 279.624, 285.394, 285.394, 69.624, 75.394, 0, 2],
    [300, 300, 514.466, 514.466, 514.466, 214.466, 214.466, 0, 1],
  ]);
});

test("the first record, whole: every key in its place, and none that does not apply", async () => {
  const records = await run("round_robin", await setupOf(handMade));
  expect(Object.entries(records[0]!)).toEqual(
    Object.entries({
      mode: "round_robin",
      uuid: "round_robin-1",
      session_id: "request_1",
      turn_index: 0,
      terminal_status: "completed",
      arrival_time_ms: 0,
      dispatched_at_ms: 0,
      first_admit_ms: 0,
      terminal_time_ms: 44.083,
      first_token_ms: 32.491,
      last_token_ms: 44.083,
      ttft_ms: 32.491,
      e2e_latency_ms: 44.083,
      ttst_ms: 5.796,
      itl_mean_ms: 5.796,
      itl_p99_ms: 5.796,
      input_length: 1024,
      requested_output_length: 3,
      output_length: 3,
      reused_input_tokens: 0,
      decode_worker_idx: 0,
      decode_admit_ms: 0,
      admission_count: 1,
      readmission_count: 0,
      routing_history: [
        {
          pool: "aggregated",
          outcome: "selected",
          queue_entered_at_ms: 0,
          released_at_ms: 0,
          queue_wait_ms: 0,
          logical_worker_id: "0",
          dp_rank: 0,
        },
      ],
      admission_history: [
        {
          admission_ordinal: 0,
          pool_admission_ordinal: 0,
          pool: "aggregated",
          at_ms: 0,
          reused_input_tokens: 0,
          is_readmission: false,
        },
      ],
    }),
  );
});

test("the summary of that trace", async () => {
  const summary = (await replayMode("round_robin", await setupOf(handMade))).summary();
  expect(summary).toMatchObject({
    num_requests: 5,
    completed_requests: 5,
    total_input_tokens: 14_608,
    total_output_tokens: 9,
    duration_ms: 514.466,
    decode_worker_seconds: 0.514466,
    prefix_cache_reused_ratio: 960 / 14_608,
    first_admission_prefix_cache_reused_ratio: 960 / 14_608,
    min_ttft_ms: 17.475,
    median_ttft_ms: 49.363,
    max_ttft_ms: 214.466,
    min_itl_ms: 5.77,
    max_itl_ms: 30.261,
    median_itl_ms: 5.796,
    median_ttst_ms: 5.796,
  });
  expect(summary.mean_ttft_ms).toBeCloseTo(383.419 / 5, 9);
  expect(summary.request_throughput_rps).toBeCloseTo(5 / 0.514466, 9);
  expect(summary.max_output_token_throughput_per_user).toBeCloseTo(1000 / 5.77, 9);
  expect(summary).not.toHaveProperty("wall_time_ms");
});

test("requests of one instant share the first pass", async () => {
  const twins = [1, 2].map((id) => ({ timestamp: 5, input_length: 512, output_length: 1, hash_ids: [id] }));
  const records = await run("round_robin", await setupOf(twins));
  expect(records.map((record) => record.ttft_ms)).toEqual([32.491, 32.491]);
});

describe("sessions", () => {
  const turns = [
    { session_id: "a", timestamp: 10, input_length: 1024, output_length: 1, hash_ids: ids(1, 2) },
    { session_id: "a", input_length: 1024, delay: 50, output_length: 1, hash_ids: ids(3, 2) },
    { session_id: "b", timestamp: 10, input_length: 1024, output_length: 1, hash_ids: ids(5, 2) },
    { session_id: "a", timestamp: 700, input_length: 1024, output_length: 1, hash_ids: ids(7, 2) },
    { session_id: "a", timestamp: 900, input_length: 1024, output_length: 1, hash_ids: ids(9, 2) },
  ];

  test("a turn arrives its delay after the previous one finished", async () => {
    const records = await run("round_robin", await setupOf(turns, { workers: 2 }));
    expect(records.map((r) => [r.session_id, r.turn_index, r.arrival_time_ms, r.terminal_time_ms])).toEqual([
      ["a", 0, 0, 32.491],
      ["a", 1, 82.491, 114.982],
      ["b", 0, 0, 32.491],
      // The turn before has no timestamp, so the one before that counts.
      ["a", 2, 804.982, 837.473],
      ["a", 3, 1037.473, 1069.964],
    ]);
  });

  test("speed divides timestamps and delays, not the engine's time", async () => {
    const records = await run("round_robin", await setupOf(turns, { workers: 2, speed: 2 }));
    expect(records.map((r) => r.arrival_time_ms)).toEqual([0, 57.491, 0, 434.982, 567.473]);
  });

  test("a turn that its worker refuses does not hold up the next", async () => {
    const records = await run(
      "least_loaded",
      await setupOf(
        [
          { session_id: "a", output_length: 500, hash_ids: ids(1, 3) },
          { session_id: "a", delay: 5, output_length: 1, hash_ids: ids(1, 1) },
        ],
        { blocks: 24 },
      ),
    );
    expect(records[0]).toMatchObject({ terminal_status: "rejected", terminal_time_ms: 0, output_length: 0 });
    expect(records[0]).toMatchObject({ admission_count: 0, admission_history: [], reused_input_tokens: 0 });
    expect(Object.keys(records[0]!)).not.toEqual(expect.arrayContaining(["ttft_ms"]));
    expect(records[1]).toMatchObject({ terminal_status: "completed", arrival_time_ms: 5 });
  });
});

test("a trace whose requests are all refused has a summary without averages", async () => {
  const setup = await setupOf([{ output_length: 1, hash_ids: [1] }], { blocks: 1 });
  expect((await replayMode("round_robin", setup)).summary()).toEqual({
    ...{ num_requests: 1, completed_requests: 0, total_input_tokens: 0, total_output_tokens: 0 },
    ...{ duration_ms: 0, decode_worker_seconds: 0, gpu_hours: 0 },
  });
});

test("a preempted request shows both admissions, and counts its best reuse", async () => {
  // 20 blocks: both prompts take 8, and from the 129th generated token on a request needs 11.
  const lines = [1, 2].map((id) => ({ timestamp: 0, input_length: 512, output_length: 200, hash_ids: [id] }));
  const setup = await setupOf(lines, { blocks: 20 });
  const report = await replayMode("round_robin", setup);
  const [first, second] = report.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(first).toMatchObject({ admission_count: 1, readmission_count: 0, reused_input_tokens: 0 });
  expect(second).toMatchObject({ admission_count: 2, readmission_count: 1, reused_input_tokens: 512 });
  expect(second!.admission_history).toMatchObject([
    { admission_ordinal: 0, reused_input_tokens: 0, is_readmission: false, at_ms: 0 },
    { admission_ordinal: 1, reused_input_tokens: 512, is_readmission: true, at_ms: first!.terminal_time_ms },
  ]);
  expect(second!.output_length).toBe(200);
  expect(report.summary()).toMatchObject({
    prefix_cache_reused_ratio: 0.5,
    first_admission_prefix_cache_reused_ratio: 0,
  });
});

test("withItl writes every gap", async () => {
  const report = await replayMode("round_robin", await setupOf(handMade), { withItl: true });
  expect(report.lines.map((line) => (JSON.parse(line) as { itl_ms?: number[] }).itl_ms)).toEqual([
    [5.796, 5.796],
    undefined,
    [30.261],
    [5.77],
    undefined,
  ]);
});
