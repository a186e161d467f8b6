import { expect, test } from "vitest";
import { decodeMs, passMicros, prefillMs } from "../../src/replay/timing.js";

test.each([
  [0, 0],
  [1024, 32.49],
  [8192, 169.14],
])("prefill of %i tokens takes %f ms", (tokens, ms) => {
  expect(prefillMs(tokens)).toBeCloseTo(ms, 2);
});

test.each([
  [0, 5.74],
  [0.5, 26.31],
  [1, 34.01],
])("decode at usage %f takes %f ms", (usage, ms) => {
  expect(decodeMs(usage)).toBeCloseTo(ms, 2);
});

test("a decode step takes at least 1 ms", () => {
  expect(decodeMs(3)).toBe(1);
});

test("a pass is prefill plus decode, in whole microseconds", () => {
  expect(passMicros(1024, 0, 0.5)).toBe(32_491);
  expect(passMicros(0, 3, 0.5)).toBe(26_310);
  expect(passMicros(1024, 3, 0.5)).toBe(58_801);
});
