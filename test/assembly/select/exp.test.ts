import { describe, expect, test } from "vitest";
import { Random } from "../../../src/core/random.js";
import { Pool } from "./pool.js";

const { kernel } = new Pool();

describe("exp", () => {
  test("is within 1e-14 of e^x up to |x| = 45, and within 1e-13 over its range", () => {
    const random = new Random(1n);
    for (let i = 0; i < 50_000; i++) {
      const x = i % 2 ? -random.double() * 708 : random.double() * 50;
      expect(Math.abs(kernel.exp(x) / Math.exp(x) - 1)).toBeLessThan(Math.abs(x) < 45 ? 1e-14 : 1e-13);
    }
  });

  test.each([
    [0, 1],
    [-0, 1],
    [-709, 0],
    [-1e300, 0],
    [-Infinity, 0],
  ])("exp(%d) = %d", (x, want) => expect(kernel.exp(x)).toBe(want));
});

describe("tanh", () => {
  test("is within 1e-15 of tanh x, and odd", () => {
    const random = new Random(2n);
    for (let i = 0; i < 20_000; i++) {
      const x = random.double() * (i % 2 ? 30 : 0.01);
      expect(Math.abs(kernel.tanh(x) - Math.tanh(x))).toBeLessThan(1e-15);
      expect(kernel.tanh(-x)).toBe(-kernel.tanh(x));
    }
  });

  test.each([
    [0, 0],
    [400, 1],
    [-400, -1],
    [Infinity, 1],
    [1e300, 1],
  ])("tanh(%d) = %d", (x, want) => expect(kernel.tanh(x)).toBe(want));
});

test.each([
  [0, 1],
  [Infinity, Math.exp(-1)],
  [-Infinity, Math.exp(1)],
  [1, Math.exp(-Math.tanh(1))],
])("taints that sum to %d multiply by %d", (sum, want) => {
  expect(Math.abs(kernel.taintMultiplier(sum) / want - 1)).toBeLessThan(1e-14);
});
