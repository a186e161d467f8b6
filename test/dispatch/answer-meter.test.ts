// What is read of an answer on its way: generated tokens and reported usage.
import { describe, expect, test } from "vitest";
import { AnswerMeter } from "../../src/dispatch/answer-meter.js";

const bytes = (text: string) => new TextEncoder().encode(text);
const item = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };

function read(contentType: string | null, chunks: readonly (string | Uint8Array)[]) {
  const meter = new AnswerMeter(contentType);
  const items = chunks.map((chunk) => meter.read(typeof chunk === "string" ? bytes(chunk) : chunk));
  return { items, usage: meter.usage };
}

describe("an event stream", () => {
  const whole = `${item("a")}${item("é\\n")}: comment\n\ndata: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`;

  test("has its items counted and its usage found, wherever it is cut", () => {
    const all = bytes(whole);
    for (let size = 1; size <= all.length; size += 1 + (size >> 3)) {
      const chunks = Array.from({ length: Math.ceil(all.length / size) }, (_, i) =>
        all.subarray(i * size, (i + 1) * size),
      );
      const { items, usage: found } = read("text/event-stream; charset=utf-8", chunks);
      expect(items.reduce((a, b) => a + b)).toBe(2);
      expect(found).toEqual(usage);
    }
  });

  test("counts an item when its line is over", () => {
    expect(read("text/event-stream", [item("a").slice(0, 9), item("a").slice(9), item("b") + item("c")]).items).toEqual(
      [0, 1, 2],
    );
  });

  test("may have lines that end with CR LF, no usage, or a usage that is none", () => {
    expect(read("text/event-stream", [item("a").replaceAll("\n", "\r\n")])).toEqual({ items: [1], usage: undefined });
    expect(read("text/event-stream", ['data: {"usage": nonsense}\n\n'])).toEqual({ items: [1], usage: undefined });
    expect(read("text/event-stream", ['data: {"usage": null}\n\n'])).toEqual({ items: [1], usage: undefined });
  });

  test("goes on after a line that is too long to keep", () => {
    const long = "x".repeat(1 << 19);
    const { items } = read("text/event-stream", [`data: ${long}`, long, long, `end\n${item("a")}`, item("b")]);
    expect(items).toEqual([0, 0, 0, 1, 1]);
  });
});

test("an answer in one piece has its usage found, unless it is too long", () => {
  const answer = JSON.stringify({ choices: [{ text: "a" }], usage });
  expect(read("application/json", [answer.slice(0, 20), answer.slice(20)])).toEqual({ items: [0, 0], usage });
  const long = JSON.stringify({ choices: [{ text: "x".repeat(1 << 20) }], usage });
  expect(read("application/json", [long, " "]).usage).toBeUndefined();
});

test.each([null, "text/plain", "audio/wav"])("of %o nothing is known", (contentType) => {
  expect(read(contentType, [item("a")])).toEqual({ items: [0], usage: undefined });
});
