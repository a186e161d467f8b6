import { describe, expect, test } from "vitest";
import { Random } from "../../../src/core/random.js";
import { IDLE_ROW, pickRow, probabilities, twoTierCosts } from "../../oracle/cost.js";
import { Pool } from "./pool.js";

const pool = new Pool();
const { kernel } = pool;

function withCosts(costs: readonly number[]): void {
  pool.reset(costs.length);
  pool.setCosts(costs);
}

function picks(n: number, temperature: number, seed: bigint): number[] {
  kernel.randomSeed(seed);
  return Array.from({ length: n }, () => kernel.pickRow(temperature));
}

describe("C32: equal costs", () => {
  const seeds = Array.from({ length: 20 }, (_, i) => BigInt(i));

  test.each(seeds)("4 equal rows × 4,000 are within 5σ of 1,000 each, seed %d", (seed) => {
    withCosts([3, 3, 3, 3]);
    const chosen = picks(4000, 0, seed);
    for (let row = 0; row < 4; row++) {
      expect(Math.abs(chosen.filter((r) => r === row).length - 1000)).toBeLessThanOrEqual(137);
    }
    expect(picks(4000, 0, seed)).toEqual(chosen);
  });
});

describe("draws", () => {
  test("one row at the minimum draws nothing at temperature 0", () => {
    withCosts([3, 2, 3]);
    kernel.randomSeed(9n);
    expect(kernel.pickRow(0)).toBe(1);
    expect([kernel.pickTied(), kernel.pickTieIndex(), kernel.pickDraw(), kernel.pickMinimum()]).toEqual([1, 0, NaN, 2]);
    expect(kernel.randomUnit()).toBe(new Random(9n).double());
  });

  test("tied rows draw once", () => {
    withCosts([2, 5, 2, 2]);
    const random = new Random(9n);
    kernel.randomSeed(9n);
    const u = random.double();
    const index = Math.floor(u * 3);
    expect(kernel.pickRow(0)).toBe([0, 2, 3][index]);
    expect([kernel.pickTied(), kernel.pickTieIndex(), kernel.pickDraw()]).toEqual([3, index, u]);
    expect(kernel.randomUnit()).toBe(random.double());
  });

  test("temperature draws once, also for a single row", () => {
    withCosts([2]);
    const random = new Random(9n);
    kernel.randomSeed(9n);
    expect(kernel.pickRow(0.5)).toBe(0);
    random.double();
    expect(kernel.randomUnit()).toBe(random.double());
  });

  test("no eligible row draws nothing", () => {
    withCosts([Infinity, Infinity]);
    kernel.randomSeed(9n);
    expect(kernel.pickRow(0.5)).toBe(-1);
    expect(kernel.randomUnit()).toBe(new Random(9n).double());
  });

  test("costs that are not numbers are never chosen", () => {
    withCosts([NaN, 4, NaN, 5, NaN]);
    expect(kernel.pickRow(0)).toBe(1);
  });
});

describe("softmax", () => {
  test.each([
    [0.1, [0.8808, 0.1192, 0.0]],
    [0.5, [0.5538, 0.3712, 0.075]],
    [1, [0.4573, 0.3744, 0.1682]],
    [5, [0.3598, 0.3457, 0.2946]],
  ])("costs 10, 12, 20 at temperature %d", (temperature, want) => {
    withCosts([10, 12, 20]);
    for (const [i, p] of pool.probabilities(temperature).entries()) expect(p).toBeCloseTo(want[i]!, 4);
  });

  test.each([
    [1, 0.73106],
    [0.1, 0.99995],
  ])("two rows at temperature %d: %d, whatever the gap", (temperature, first) => {
    for (const gap of [0.001, 1000]) {
      withCosts([1, 1 + gap]);
      expect(pool.probabilities(temperature)[0]).toBeCloseTo(first, 4);
    }
  });

  test("equal costs are uniform", () => {
    withCosts([5, 5, 5]);
    expect(pool.probabilities(0.7)).toEqual([1 / 3, 1 / 3, 1 / 3]);
  });

  test.each([5e-324, 1e-300, 1e300, Number.MAX_VALUE])("temperature %d stays finite", (temperature) => {
    withCosts([1, 2, Infinity, 1e300]);
    const p = pool.probabilities(temperature);
    expect(p.reduce((a, b) => a + b)).toBeCloseTo(1, 12);
    expect(p[2]).toBe(0);
    expect(kernel.pickRow(temperature)).not.toBe(2);
  });

  test("a range that overflows", () => {
    withCosts([-Number.MAX_VALUE, 0, Number.MAX_VALUE]);
    const p = pool.probabilities(1);
    for (const [i, want] of probabilities([-1, 0, 1], 1).entries()) expect(p[i]).toBeCloseTo(want, 12);
  });

  test("picks and probabilities are the oracle's", () => {
    const random = new Random(21n);
    for (let round = 0; round < 400; round++) {
      const n = 1 + random.below(300);
      const costs = Array.from({ length: n }, () => (random.below(10) ? random.below(1000) / 8 : Infinity));
      const temperature = [0, 0.05, 0.5, 2][random.below(4)]!;
      withCosts(costs);
      const seed = random.u64();
      const model = new Random(seed);
      kernel.randomSeed(seed);
      for (let i = 0; i < 5; i++)
        expect(kernel.pickRow(temperature)).toBe(pickRow(costs, temperature, () => model.double()));
      const want = probabilities(costs, temperature);
      const got = pool.probabilities(temperature);
      for (let i = 0; i < n; i++) expect(Math.abs(got[i]! - want[i]!)).toBeLessThanOrEqual(1e-12 * want[i]!);
    }
  });

  test("choices follow the probabilities", () => {
    withCosts([10, 12, 20]);
    const chosen = picks(20_000, 0.5, 3n);
    for (const [row, p] of pool.probabilities(0.5).entries()) {
      const sigma = Math.sqrt(20_000 * p * (1 - p));
      expect(Math.abs(chosen.filter((r) => r === row).length - 20_000 * p)).toBeLessThan(5 * sigma);
    }
  });
});

describe("two-tier", () => {
  test.each([
    [[0, 0], [6, 4], "cached", 1],
    [[0, 0], [5, 4], "least_loaded", 0],
    [[0, 0], [10, 40], "imbalanced", 0],
    [[0, 640], [10, 704], "cached", 1],
    [[0, 640], [10, 705], "imbalanced", 0],
  ] as const)("overlap/active %j and %j: %s, row %d", (first, second, branch, row) => {
    pool.fill([first, second].map(([device, requests]) => ({ ...IDLE_ROW, device, requests })));
    expect(pool.twoTier(10, 0.5, 32, 1.1)).toBe(branch);
    expect(kernel.pickRow(0)).toBe(row);
  });

  test("random rows are the oracle's", () => {
    const random = new Random(31n);
    for (let round = 0; round < 500; round++) {
      const rows = Array.from({ length: 1 + random.below(40) }, () => ({
        ...IDLE_ROW,
        eligible: random.below(6) > 0,
        device: random.below(12),
        requests: random.below(80),
      }));
      const requestBlocks = random.below(12);
      const [theta, absolute, relative] = [random.below(4) / 4, random.below(64), 1 + random.below(8) / 8];
      pool.fill(rows);
      const branch = pool.twoTier(requestBlocks, theta, absolute, relative);
      const params = { cacheThreshold: theta, balanceAbsThreshold: absolute, balanceRelThreshold: relative };
      const want = twoTierCosts(rows, requestBlocks, params);
      if (rows.some((r) => r.eligible)) expect(branch).toBe(want.branch);
      expect(pool.costs()).toEqual(want.costs);
    }
  });
});
