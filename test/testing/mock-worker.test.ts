import { describe, expect, test } from "vitest";
import "../../src/kernel/inlined.js";
import type { RouterEvent } from "../../src/core/types.js";
import { hashTokens } from "../../src/kernel/hash.js";
import { MockWorker, type MockWorkerOptions } from "../../src/testing/index.js";

/** A mock on a clock of its own: it only adds up what it would have waited. */
function setUp(options: Partial<MockWorkerOptions> = {}) {
  const events: RouterEvent[] = [];
  const waits: number[] = [];
  const mock = new MockWorker({
    workerId: "4",
    sleep: async (ms) => void waits.push(ms),
    onKvEvent: (event) => void events.push(event),
    ...options,
  });
  const ask = (path: string, body: object, signal?: AbortSignal) =>
    mock.fetch(
      new Request(`http://mock${path}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: "mock", ...body }),
        ...(signal ? { signal } : {}),
      }),
    );
  return { mock, events, waits, ask };
}

// biome-ignore lint/suspicious/noExplicitAny: tests read JSON documents
const json = async (answer: Response | Promise<Response>): Promise<any> => (await answer).json();

const prompt = (blocks: number, letter = "a") => letter.repeat(64 * blocks);

describe("the mock worker", () => {
  test("reuses the longest cached prefix and says so in tokens of four bytes", async () => {
    const { ask } = setUp();
    const first = await json(ask("/v1/completions", { prompt: prompt(4), max_tokens: 1 }));
    expect(first.usage).toEqual({
      prompt_tokens: 64,
      completion_tokens: 1,
      total_tokens: 65,
      prompt_tokens_details: { cached_tokens: 0 },
    });
    const second = await json(ask("/v1/completions", { prompt: prompt(4) + prompt(2, "b"), max_tokens: 1 }));
    expect(second.usage.prompt_tokens_details.cached_tokens).toBe(64);
    const third = await json(ask("/v1/completions", { prompt: `x${prompt(4)}`, max_tokens: 1 }));
    expect(third.usage.prompt_tokens_details.cached_tokens).toBe(0);
  });

  test("takes as long as the engine model says: prefill of what is not cached, then a step a token", async () => {
    const { ask, waits } = setUp();
    // 4,096 bytes are 1,024 tokens: 32.49 ms by the polynomial's own check value.
    await ask("/v1/completions", { prompt: prompt(64), max_tokens: 2 });
    expect(waits[0]).toBeCloseTo(32.49, 2);
    expect(waits).toHaveLength(3);
    await ask("/v1/completions", { prompt: prompt(64), max_tokens: 2 });
    // All cached: one token is left to compute.
    expect(waits[3]).toBeCloseTo(16.52, 2);
  });

  test("is faster by the given factor", async () => {
    const { ask, waits } = setUp({ speedUp: 10 });
    await ask("/v1/completions", { prompt: prompt(64), max_tokens: 1 });
    expect(waits[0]).toBeCloseTo(3.249, 3);
    const none = setUp({ speedUp: Number.POSITIVE_INFINITY });
    await none.ask("/v1/completions", { prompt: "a" });
    expect(none.waits).toEqual([]);
  });

  test("reports stored blocks in the router's form, names being sequence hashes", async () => {
    const { ask, events } = setUp();
    await ask("/v1/completions", { prompt: prompt(2), max_tokens: 1 });
    await ask("/v1/completions", { prompt: prompt(3), max_tokens: 1 });
    const bytes = new TextEncoder().encode(prompt(3));
    const { blockHashes, sequenceHashes } = hashTokens(Uint32Array.from(bytes), 64);
    const block = (i: number) => ({ block_hash: `${sequenceHashes[i]}`, tokens_hash: `${blockHashes[i]}` });
    expect(events).toEqual([
      {
        worker_id: "4",
        storage_tier: "device",
        event: { dp_rank: 0, data: { stored: { parent_hash: null, blocks: [block(0), block(1)] } } },
      },
      {
        worker_id: "4",
        storage_tier: "device",
        event: { dp_rank: 0, data: { stored: { parent_hash: `${sequenceHashes[1]}`, blocks: [block(2)] } } },
      },
    ]);
  });

  test("evicts the least recently used prompt, from its end, and reports it before what takes its place", async () => {
    const { ask, events, mock } = setUp({ capacityBlocks: 4 });
    await ask("/v1/completions", { prompt: prompt(3, "a"), max_tokens: 1 });
    await ask("/v1/completions", { prompt: prompt(2, "b"), max_tokens: 1 });
    const kinds = events.map(({ event }) => (event.data === "cleared" ? "cleared" : Object.keys(event.data)[0]));
    expect(kinds).toEqual(["stored", "removed", "stored"]);
    const { sequenceHashes } = hashTokens(Uint32Array.from(new TextEncoder().encode(prompt(3, "a"))), 64);
    expect(events[1]!.event.data).toEqual({ removed: { block_hashes: [`${sequenceHashes[2]}`] } });
    expect(mock.stats().cachedBlocks).toBe(4);
    const again = await json(ask("/v1/completions", { prompt: prompt(3, "a"), max_tokens: 1 }));
    expect(again.usage.prompt_tokens_details.cached_tokens).toBe(32);
  });

  test("a prompt larger than the cache is answered and cached as far as there is room", async () => {
    const { ask, mock } = setUp({ capacityBlocks: 2 });
    expect((await ask("/v1/completions", { prompt: prompt(5), max_tokens: 1 })).status).toBe(200);
    expect(mock.stats()).toEqual({ requests: 1, running: 0, cachedBlocks: 2 });
  });

  test("refuses a prompt beyond its context", async () => {
    const { ask } = setUp({ maxModelLength: 16 });
    expect((await ask("/v1/completions", { prompt: prompt(1) })).status).toBe(200);
    const refused = await ask("/v1/completions", { prompt: `${prompt(1)}x` });
    expect(refused.status).toBe(400);
    expect((await json(refused)).error).toMatchObject({ code: "invalid_request", param: "prompt" });
  });

  test("keeps its reply, so that the next turn of a chat finds it", async () => {
    const { ask } = setUp({ blockSize: 4 });
    const messages = [{ role: "user", content: "How are you?" }];
    const { choices } = await json(ask("/v1/chat/completions", { messages }));
    const next = [...messages, choices[0].message, { role: "user", content: "And now?" }];
    const { usage } = await json(ask("/v1/chat/completions", { messages: next }));
    const known = `user\x1fHow are you?\x1eassistant\x1f${choices[0].message.content}\x1e`.length;
    expect(usage.prompt_tokens_details.cached_tokens).toBe(Math.floor(known / 4));
  });

  test("streams the same text as it answers whole, with the usage that was asked for", async () => {
    const { ask } = setUp();
    const messages = [{ role: "user", content: "a" }];
    const whole = await json(ask("/v1/chat/completions", { messages }));
    const streamed = await ask("/v1/chat/completions", {
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(streamed.headers.get("content-type")).toBe("text/event-stream");
    const events = (await streamed.text()).split("\n\n").filter((event) => event !== "");
    expect(events.at(-1)).toBe("data: [DONE]");
    const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice("data: ".length)));
    expect(chunks[0].choices[0].delta.role).toBe("assistant");
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe(
      whole.choices[0].message.content,
    );
    expect(chunks.at(-2).choices[0].finish_reason).toBe("stop");
    expect(chunks.at(-1).usage.completion_tokens).toBe(whole.usage.completion_tokens);
  });

  test("answers every prompt of a batch, and token ids in their own count", async () => {
    const { ask } = setUp();
    const batch = await json(ask("/v1/completions", { prompt: ["a", "b"], max_tokens: 2 }));
    expect(batch.choices.map(({ index, finish_reason }: Record<string, unknown>) => [index, finish_reason])).toEqual([
      [0, "length"],
      [1, "length"],
    ]);
    const ids = await json(ask("/v1/completions", { prompt: Array(130).fill(7), max_tokens: 1 }));
    expect(ids.usage.prompt_tokens).toBe(130);
    const again = await json(ask("/v1/completions", { prompt: Array(130).fill(7), max_tokens: 1 }));
    expect(again.usage.prompt_tokens_details.cached_tokens).toBe(128);
  });

  test("prefills one prompt at a time", async () => {
    const running: (() => void)[] = [];
    const { ask } = setUp({ sleep: () => new Promise((resolve) => running.push(resolve)) });
    const answers = [ask("/v1/completions", { prompt: "a" }), ask("/v1/completions", { prompt: "b" })];
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(running).toHaveLength(1);
    const pump = setInterval(() => {
      for (const go of running.splice(0)) go();
    }, 1);
    await Promise.all(answers);
    clearInterval(pump);
  });

  test("lets go of a stream that is cancelled, also while it waits", async () => {
    const { ask, mock } = setUp({ sleep: undefined as never });
    const answer = await ask("/v1/completions", { prompt: prompt(3), stream: true });
    const reader = answer.body!.getReader();
    await reader.read();
    expect(mock.stats().running).toBe(1);
    await reader.cancel();
    expect(mock.stats().running).toBe(0);
    const other = await json(ask("/v1/completions", { prompt: prompt(3), max_tokens: 1 }));
    expect(other.usage.prompt_tokens_details.cached_tokens).toBe(48);
  });

  test.each([
    [{ max_tokens: -1 }, "max_tokens"],
    [{ max_tokens: 0 }, "max_tokens"],
    [{ max_tokens: 1.5 }, "max_tokens"],
    [{ max_tokens: "x" }, "max_tokens"],
    [{ max_completion_tokens: 0 }, "max_completion_tokens"],
    [{ max_completion_tokens: 5, max_tokens: "5" }, "max_tokens"],
    [{ n: 2 }, "n"],
    [{ n: "1" }, "n"],
    [{ stream: "yes" }, "stream"],
    [{ stream: 1 }, "stream"],
  ])("refuses %j with 400, as engines do", async (settings, param) => {
    const { ask, mock } = setUp();
    const refused = await ask("/v1/completions", { prompt: "a", ...settings });
    expect(refused.status).toBe(400);
    const { error } = await json(refused);
    expect(error).toMatchObject({ type: "invalid_request_error", code: "invalid_request", param });
    expect(error.message).toContain(`${param} must be `);
    expect(mock.stats()).toEqual({ requests: 0, running: 0, cachedBlocks: 0 });
  });

  test.each([
    [undefined, "options"],
    [{ workerID: "1" }, "workerID"],
    [{ blockSize: 0 }, "blockSize"],
    [{ capacityBlocks: 1.5 }, "capacityBlocks"],
    [{ speedUp: 0 }, "speedUp"],
    [{ speedUp: "fast" }, "speedUp"],
    [{ onKvEvent: true }, "onKvEvent"],
  ])("the options %o are invalid_config", (options, path) => {
    const make = () => new MockWorker((options && { workerId: "1", ...options }) as never);
    expect(make).toThrow(expect.objectContaining({ code: "invalid_config", path }));
  });

  test("takes null for what is absent", async () => {
    const nulls = { max_tokens: null, max_completion_tokens: null, n: null, stream: null };
    const answer = await json(setUp().ask("/v1/completions", { prompt: "a", ...nulls }));
    expect(answer.choices[0].finish_reason).toBe("stop");
  });

  test("refuses what it does not know in OpenAI's shape", async () => {
    const { ask, mock } = setUp();
    expect((await json(ask("/v1/completions", {}))).error.code).toBe("invalid_request");
    const missing = await mock.fetch(new Request("http://mock/v1/nothing"));
    expect(missing.status).toBe(404);
    const models = await json(mock.fetch(new Request("http://mock/v1/models")));
    expect(models.data[0].id).toBe("mock");
  });
});
