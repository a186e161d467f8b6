import "../../src/kernel/inlined.js";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { registerReplay } from "../../src/cli/replay.js";
import { registerTrace } from "../../src/cli/trace.js";
import { WarmrouteError } from "../../src/core/errors.js";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "warmroute-replay-"));
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(directory, { recursive: true, force: true });
});

/** Runs a command and answers what it printed on stdout. */
async function warmroute(...argv: string[]): Promise<string> {
  let printed = "";
  const write = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += text;
    return true;
  });
  const program = new Command("warmroute").exitOverride();
  registerReplay(program);
  registerTrace(program);
  try {
    await program.parseAsync(argv, { from: "user" });
  } finally {
    write.mockRestore();
  }
  return printed;
}

async function failure(...argv: string[]): Promise<WarmrouteError> {
  const error = await warmroute(...argv).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(WarmrouteError);
  return error as WarmrouteError;
}

const text = (name: string): string => readFileSync(join(directory, name), "utf8");

async function makeTrace(requests = "60"): Promise<string> {
  const path = join(directory, "trace.jsonl");
  await warmroute("trace", "--requests", requests, "--sessions", "12", "--seed", "5", "--out", path);
  return path;
}

const loadModes = "round_robin,random,least_loaded";

test("trace prints the same lines that it writes", async () => {
  const path = await makeTrace();
  const printed = await warmroute("trace", "--requests", "60", "--sessions", "12", "--seed", "5");
  expect(printed).toBe(readFileSync(path, "utf8"));
  expect(printed.trimEnd().split("\n")).toHaveLength(60);
});

test("examples/sample-trace.jsonl is what its command makes, byte for byte", async () => {
  const sample = readFileSync(new URL("../../examples/sample-trace.jsonl", import.meta.url), "utf8");
  expect(sample.length).toBeLessThan(300_000);
  const flags = ["--seed", "1", "--requests", "500", "--sessions", "100", "--system-prompts", "8"];
  expect(await warmroute("trace", ...flags)).toBe(sample);
});

test("replay writes both documents, the same bytes each time", async () => {
  const path = await makeTrace();
  const run = (out: string): Promise<string> =>
    warmroute("replay", path, "--workers", "3", "--mode", loadModes, "--seed", "9", "--out", join(directory, out));
  await run("deep/er/a");
  await run("a");
  await run("b");
  expect(readdirSync(join(directory, "a")).sort()).toEqual(["requests.jsonl", "summary.json"]);
  expect(text("a/requests.jsonl")).toBe(text("b/requests.jsonl"));
  expect(text("a/summary.json")).toBe(text("b/summary.json"));
  expect(text("deep/er/a/summary.json")).toBe(text("a/summary.json"));
  expect(text("a/requests.jsonl") + text("a/summary.json")).not.toContain(directory);

  const summary = JSON.parse(text("a/summary.json")) as Record<string, unknown>;
  expect(Object.keys(summary)).toEqual(["trace", "seed", "workers", "block_size", "modes"]);
  expect(summary).toMatchObject({ trace: "trace.jsonl", seed: "9", workers: 3, block_size: 64 });
  const modes = summary.modes as Record<string, Record<string, number>>;
  expect(Object.keys(modes)).toEqual(loadModes.split(","));

  const records = text("a/requests.jsonl")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, number>);
  const expected = loadModes.split(",").flatMap((mode) => Array.from({ length: 60 }, (_, i) => `${mode}-${i + 1}`));
  expect(records.map((record) => record.uuid)).toEqual(expected);
  for (const mode of Object.keys(modes)) {
    const own = records.filter((record) => String(record.mode) === mode);
    const sum = (field: string): number => own.reduce((total, record) => total + record[field]!, 0);
    expect(modes[mode]!.completed_requests).toBe(60);
    expect(modes[mode]!.prefix_cache_reused_ratio).toBe(sum("reused_input_tokens") / sum("input_length"));
    expect(modes[mode]!.total_output_tokens).toBe(sum("requested_output_length"));
    expect(modes[mode]!.mean_ttft_ms).toBeCloseTo(sum("ttft_ms") / 60, 6);
  }
});

test("another seed changes the random modes alone", async () => {
  const path = await makeTrace();
  const run = async (seed: string): Promise<Record<string, unknown>> => {
    const printed = await warmroute("replay", path, "--mode", loadModes, "--seed", seed, "--json");
    return (JSON.parse(printed) as { modes: Record<string, unknown> }).modes;
  };
  const [one, two] = [await run("1"), await run("2")];
  expect(one.round_robin).toEqual(two.round_robin);
  expect(one.random).not.toEqual(two.random);
});

test("--json prints the summary document alone", async () => {
  const path = await makeTrace();
  const out = join(directory, "out");
  const printed = await warmroute("replay", path, "--mode", "round_robin", "--json", "--out", out);
  expect(printed).toBe(text("out/summary.json"));
});

test("without options, kv is compared with round robin on eight workers, and nothing is written", async () => {
  const path = await makeTrace();
  const printed = await warmroute("replay", path);
  expect(printed).toMatch(/, on 8 workers of 16,384 blocks of 64 tokens\n[^\n]+\n\n +kv +round_robin\n/);
  expect(readdirSync(directory)).toEqual(["trace.jsonl"]);
});

test("the table counts refused requests where there are any", async () => {
  const printed = await warmroute("replay", await makeTrace(), "--mode", "round_robin,random", "--blocks", "80");
  expect(printed).toMatch(/\nrefused +(\d+) +\1\n/);
  expect(printed).toMatch(
    /\nrefused: \d+ requests, as prompt and answer need up to \d+ blocks, and a worker has 80 \(--blocks\)\n/,
  );
});

test("the table says why where every request is refused, and counts one of a thing as one", async () => {
  const one = ["--workers", "1", "--mode", "random", "--blocks", "1", "--block-size", "1"];
  const complain = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const printed = await warmroute("replay", await makeTrace(), ...one);
  expect(printed).toContain(" on 1 worker of 1 block of 1 token\n");
  const note =
    /refused: every request, as prompt and answer need up to [\d,]+ blocks, and a worker has 1 \(--blocks\): nothing ran\n/;
  expect(printed).toMatch(note);
  expect(complain.mock.calls).toEqual([[expect.stringMatching(note)]]);
  expect(printed).toMatch(/\ncompleted +0\n/);
  expect(printed).not.toContain("duration");
});

test("hash ids beyond the input length are said", async () => {
  const path = join(directory, "short.jsonl");
  const line = (input: number, ...hash_ids: number[]) =>
    JSON.stringify({ input_length: input, output_length: 2, hash_ids });
  writeFileSync(path, `${line(1024, 1, 2)}\n${line(513, 1, 2)}\n${line(512, 1, 2)}\n${line(1, 1, 2, 3)}\n`);
  const printed = await warmroute("replay", path, "--mode", "random");
  expect(printed).toContain("\nhash_ids beyond the input_length not used on 2 lines, the first: line 3\n");
});

test("lengths beyond the hash ids are cut, counted and said; with --json on stderr", async () => {
  const path = join(directory, "long.jsonl");
  const line = (input: number) => JSON.stringify({ input_length: input, output_length: 2, hash_ids: [1] });
  writeFileSync(path, `${line(512)}\n${line(513)}\n${line(9999)}\n`);
  const note = "input_length cut to what the hash_ids stand for on 2 lines, the first: line 2\n";
  expect(await warmroute("replay", path, "--mode", "random")).toContain(`, 1,536 prompt tokens, `);
  expect(await warmroute("replay", path, "--mode", "random")).toContain(note);
  const complain = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  await warmroute("replay", path, "--mode", "random", "--json");
  expect(complain.mock.calls).toEqual([[note]]);
});

test("the table counts preemptions where there are any, and its reuse is that of first admissions", async () => {
  const path = join(directory, "tight.jsonl");
  const line = (id: number): string => JSON.stringify({ output_length: 200, hash_ids: [id] });
  writeFileSync(path, `${line(1)}\n${line(2)}\n`);
  const printed = await warmroute("replay", path, "--workers", "1", "--mode", "round_robin", "--blocks", "20");
  expect(printed).toMatch(/\npreempted +1\n/);
  expect(printed).toMatch(/\nprompt reused +0\.0 %\n/);
});

test("the table shows a column for each mode and what could have been reused", async () => {
  const printed = await warmroute("replay", await makeTrace(), "--mode", "round_robin,random");
  expect(printed).toMatch(/^trace\.jsonl: 60 requests, [\d,]+ prompt tokens, on 8 workers/);
  expect(printed).toMatch(/\n\d+\.\d % of the tokens repeat the beginning of an earlier prompt: /);
  expect(printed).toMatch(/\n +round_robin +random\n/);
  expect(printed).toMatch(/\ncompleted +60 +60\n/);
  expect(printed).toMatch(/\nprompt reused +\d+\.\d % +\d+\.\d %\n/);
});

test("--itl adds the time between tokens; --speed compresses the arrivals", async () => {
  const path = await makeTrace();
  await warmroute("replay", path, "--mode", "round_robin", "--itl", "--speed", "10", "--out", join(directory, "fast"));
  await warmroute("replay", path, "--mode", "round_robin", "--out", join(directory, "slow"));
  const [fast, slow] = ["fast", "slow"].map((name) => JSON.parse(text(`${name}/requests.jsonl`).split("\n")[3]!));
  expect(fast.itl_ms).toHaveLength(fast.output_length - 1);
  expect(slow).not.toHaveProperty("itl_ms");
  expect(fast.arrival_time_ms).toBeCloseTo(slow.arrival_time_ms / 10, 3);
});

describe("bad usage", () => {
  test.each([
    [["--mode", "round_robbin"], "--mode", /unknown mode "round_robbin"/, "round_robin"],
    [["--mode", "kw"], "--mode", /unknown mode "kw"/, "kv"],
    [["--mode", "fastest"], "--mode", /the modes are kv, round_robin, random, least_loaded/, undefined],
    [["--mode", ""], "--mode", /unknown mode ""/, undefined],
    [["--mode", "random,random"], "--mode", /given twice/, undefined],
    [["--workers", "0"], "--workers", /from 1 to 16384, not "0"/, undefined],
    [["--workers", "1.5"], "--workers", /not "1.5"/, undefined],
    [["--workers", "16385"], "--workers", /not "16385"/, undefined],
    [["--block-size", "-1"], "--block-size", /from 1 to 1048576, not "-1"/, undefined],
    [["--blocks", "many"], "--blocks", /not "many"/, undefined],
    [["--speed", "0"], "--speed", /from 0.001 to 1000000, not "0"/, undefined],
    [["--speed", "Infinity"], "--speed", /not "Infinity"/, undefined],
    [["--seed", "1.5"], "--seed", /64-bit integer/, undefined],
  ])("replay %j", async (flags, path, message, suggestion) => {
    const error = await failure("replay", await makeTrace(), ...flags, "--out", join(directory, "out"));
    expect(error).toMatchObject({ code: "invalid_usage", path });
    expect(error.message).toMatch(message);
    expect(error.details.suggestion).toBe(suggestion);
    expect(existsSync(join(directory, "out"))).toBe(false);
  });

  test.each([
    [["--requests", "0"], "--requests", /whole number from 1/],
    [["--requests", "3", "--sessions", "4"], "--sessions", /4 is more than --requests 3/],
    [["--system-prompts", "x"], "--system-prompts", /not "x"/],
    [["--seed", "?"], "--seed", /64-bit integer/],
  ])("trace %j", async (flags, path, message) => {
    const error = await failure("trace", ...flags);
    expect(error).toMatchObject({ code: "invalid_usage", path });
    expect(error.message).toMatch(message);
  });
});

describe("bad input", () => {
  const replayTo = (path: string, ...more: string[]): string[] => [
    ...["replay", path, "--mode", "round_robin", "--out", join(directory, "out")],
    ...more,
  ];

  test("a trace that cannot be read", async () => {
    expect(await failure(...replayTo(join(directory, "none.jsonl")))).toMatchObject({
      code: "unreadable",
      message: expect.stringContaining("none.jsonl") as string,
    });
    expect(await failure(...replayTo(directory))).toMatchObject({ code: "unreadable" });
  });

  test("a bad line, which --skip-bad leaves out and reports", async () => {
    const path = join(directory, "bad.jsonl");
    const good = JSON.stringify({ timestamp: 0, output_length: 2, hash_ids: [1, 2] });
    writeFileSync(path, `${good}\n{"output_length": 2}\n${good}\n`);
    expect(await failure(...replayTo(path))).toMatchObject({ code: "invalid_trace", line: 2, path: "hash_ids" });
    expect(existsSync(join(directory, "out"))).toBe(false);
    const printed = await warmroute(...replayTo(path, "--skip-bad"));
    expect(printed).toContain("1 bad line skipped, the first: line 2: hash_ids must be an array");
    const uuids = text("out/requests.jsonl").trimEnd().split("\n");
    expect(uuids.map((line) => (JSON.parse(line) as { uuid: string }).uuid)).toEqual([
      "round_robin-1",
      "round_robin-3",
    ]);
  });

  test("an empty trace", async () => {
    const path = join(directory, "empty.jsonl");
    writeFileSync(path, "\n");
    expect(await failure(...replayTo(path))).toMatchObject({ code: "invalid_trace", message: /empty/ });
  });

  test("an out directory that cannot be made or written", async () => {
    const path = await makeTrace();
    writeFileSync(join(directory, "out"), "a file is in the way");
    expect(await failure(...replayTo(path))).toMatchObject({ code: "unwritable" });
    expect(text("out")).toBe("a file is in the way");
    for (const place of [join(directory, "out/below"), "/proc/warmroute/out", "/dev/null/out"]) {
      const flags = ["--mode", "round_robin", "--out", place];
      expect(await failure("replay", path, ...flags)).toMatchObject({ code: "unwritable" });
    }
  });

  test("a write that fails leaves the old results and no temporary files", async () => {
    const path = await makeTrace();
    const out = join(directory, "out");
    await warmroute(...replayTo(path));
    const before = text("out/requests.jsonl");
    const inTheWay = `summary.json.${process.pid}.tmp`;
    mkdirSync(join(out, inTheWay));
    expect(await failure(...replayTo(path, "--speed", "2"))).toMatchObject({ code: "unwritable" });
    expect(readdirSync(out).sort()).toEqual(["requests.jsonl", "summary.json", inTheWay]);
    expect(text("out/requests.jsonl")).toBe(before);
  });

  test("trace to a place that cannot be written", async () => {
    expect(await failure("trace", "--out", join(directory, "no/such/place"))).toMatchObject({ code: "unwritable" });
  });
});
