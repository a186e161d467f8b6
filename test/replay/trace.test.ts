import { describe, expect, test } from "vitest";
import { WarmrouteError } from "../../src/core/errors.js";
import { readTrace } from "../../src/replay/trace.js";

const good = '{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [7, 9]}';
const line = (fields: object): string => JSON.stringify({ output_length: 1, hash_ids: [0], ...fields });

async function failure(lines: string[]): Promise<WarmrouteError> {
  const error = await readTrace(lines).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(WarmrouteError);
  return error as WarmrouteError;
}

describe("reading", () => {
  test("a line without a session is a session of its own", async () => {
    const { requests } = await readTrace([good, "", good]);
    expect(requests).toEqual([
      {
        ...{ line: 1, sessionId: "request_1", turn: 0, arrivalMs: 0, delayMs: 0 },
        ...{ inputTokens: 600, outputTokens: 5, hashIds: Uint32Array.of(0, 1) },
      },
      {
        ...{ line: 3, sessionId: "request_3", turn: 0, arrivalMs: 0, delayMs: 0 },
        ...{ inputTokens: 600, outputTokens: 5, hashIds: Uint32Array.of(0, 1) },
      },
    ]);
  });

  test("input_length is clamped to what the hash ids cover, and is all of it by default", async () => {
    const { requests } = await readTrace([line({ input_length: 2000, hash_ids: [1, 2] }), line({ hash_ids: [1, 2] })]);
    expect(requests.map((r) => r.inputTokens)).toEqual([1024, 1024]);
  });

  test("lines may end in CR LF, and null stands for an absent field", async () => {
    const { requests } = await readTrace([`${line({ timestamp: null, session_id: null, delay: null })}\r`]);
    expect(requests[0]).toMatchObject({ sessionId: "request_1", arrivalMs: 0 });
  });

  test("hash ids beyond 2^53 keep all their bits", async () => {
    const ids = '{"output_length": 1, "hash_ids": [18446744073709551615, 18446744073709551614, -9223372036854775808]}';
    expect((await readTrace([ids])).requests[0]!.hashIds).toEqual(Uint32Array.of(0, 1, 2));
  });

  test("lines may come from a stream", async () => {
    async function* stream(): AsyncGenerator<string> {
      yield good;
      yield good;
    }
    expect((await readTrace(stream())).requests).toHaveLength(2);
  });

  test("arrivals count from the earliest timestamp", async () => {
    const { requests } = await readTrace([line({ timestamp: 500 }), line({ timestamp: 100.5 }), line({})]);
    expect(requests.map((r) => r.arrivalMs)).toEqual([399.5, 0, 0]);
  });
});

describe("sessions", () => {
  test("a turn waits for delay, else for the difference of timestamps, else not at all", async () => {
    const { requests } = await readTrace([
      line({ session_id: "a", timestamp: 1000 }),
      line({ session_id: "b", timestamp: 1000 }),
      line({ session_id: "a", timestamp: 5000, delay: 30 }),
      line({ session_id: "a", timestamp: 5700 }),
      line({ session_id: "a" }),
      line({ session_id: "a", timestamp: 6000 }),
    ]);
    expect(requests.map((r) => [r.sessionId, r.turn, r.delayMs, r.next])).toEqual([
      ["a", 0, 0, 2],
      ["b", 0, 0, undefined],
      ["a", 1, 30, 3],
      ["a", 2, 700, 4],
      ["a", 3, 0, 5],
      ["a", 4, 300, undefined],
    ]);
  });
});

describe("bad lines", () => {
  test.each([
    ["{", undefined, /line 2 is not JSON: "\{"/],
    ["[1]", undefined, /line 2 is not an object but an array/],
    ["null", undefined, /line 2 is not an object but null/],
    ['{"hash_ids": [1]}', "output_length", /line 2: output_length is missing/],
    [line({ output_length: 0 }), "output_length", /at least 1, not 0/],
    [line({ output_length: 1.5 }), "output_length", /not 1.5/],
    [line({ output_length: "3" }), "output_length", /not "3"/],
    [line({ input_length: 0 }), "input_length", /at least 1, not 0/],
    [line({ input_length: -4 }), "input_length", /not -4/],
    ['{"output_length": 1}', "hash_ids", /must be an array of integers, not undefined/],
    [line({ hash_ids: [] }), "hash_ids", /is empty/],
    [line({ hash_ids: [1, "2"] }), "hash_ids[1]", /must be an integer, not "2"/],
    [line({ hash_ids: [1.5] }), "hash_ids[0]", /not 1.5/],
    [line({ timestamp: -1 }), "timestamp", /from 0 to 2\^53 − 1, not -1/],
    [line({ timestamp: "0" }), "timestamp", /not "0"/],
    ['{"output_length": 1, "hash_ids": [1], "timestamp": 1e999}', "timestamp", /not Infinity/],
    [line({ session_id: 4 }), "session_id", /non-empty string, not 4/],
    [line({ session_id: "" }), "session_id", /non-empty string/],
    [line({ session_id: "new", delay: 5 }), "delay", /first turn/],
    [line({ delay: 5 }), "delay", /first turn/],
    [line({ session_id: "old", delay: -5 }), "delay", /from 0 to .*, not -5/],
    [line({ session_id: "old", timestamp: 5 }), "timestamp", /5 is earlier than the previous turn's, 10/],
  ])("%s", async (text, path, message) => {
    const error = await failure([line({ session_id: "old", timestamp: 10 }), text]);
    expect(error.code).toBe("invalid_trace");
    expect(error.line).toBe(2);
    expect(error.path).toBe(path);
    expect(error.message).toMatch(message);
  });

  test("skipBad leaves them out and says which and why", async () => {
    const trace = await readTrace([good, "x", line({ output_length: 0 }), good], { skipBad: true });
    expect(trace.requests.map((r) => r.line)).toEqual([1, 4]);
    expect(trace.skipped).toEqual([
      { line: 2, reason: 'line 2 is not JSON: "x"' },
      { line: 3, reason: "line 3: output_length must be an integer of at least 1, not 0" },
    ]);
  });

  test("a bad turn that is skipped leaves its session whole", async () => {
    const turns = [
      line({ session_id: "a" }),
      line({ session_id: "a", delay: -1 }),
      line({ session_id: "a", delay: 2 }),
    ];
    const { requests } = await readTrace(turns, { skipBad: true });
    expect(requests.map((r) => [r.turn, r.delayMs])).toEqual([
      [0, 0],
      [1, 2],
    ]);
  });

  test("an empty trace is an error, also when only bad lines were skipped", async () => {
    expect(await failure(["", "  "])).toMatchObject({ code: "invalid_trace", message: /empty: it has no lines/ });
    const skipped = await readTrace(["x"], { skipBad: true }).catch((e: unknown) => e);
    expect(skipped).toMatchObject({ code: "invalid_trace", message: /all 1 lines are bad: line 1 is not JSON/ });
  });

  test("an error of the source is not a bad line", async () => {
    async function* broken(): AsyncGenerator<string> {
      yield good;
      throw new Error("disk on fire");
    }
    await expect(readTrace(broken(), { skipBad: true })).rejects.toThrow("disk on fire");
  });
});

test.each(["input_length", "output_length", "timestamp"])(
  "a %s of 16 digits is said to be too large",
  async (field) => {
    const line = JSON.stringify({ output_length: 2, hash_ids: [1], [field]: 0 }).replace(
      `"${field}":0`,
      `"${field}":1234567890123456`,
    );
    await expect(readTrace([line])).rejects.toThrow(/is too large.*: 1234567890123456$/);
  },
);
