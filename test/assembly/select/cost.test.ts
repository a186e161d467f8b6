import { describe, expect, test } from "vitest";
import { Random } from "../../../src/core/random.js";
import {
  type CostParams,
  type CostRequest,
  type CostRow,
  DEFAULT_PARAMS,
  IDLE_ROW,
  rowCost,
  rowCosts,
} from "../../oracle/cost.js";
import { FLAG, Pool } from "./pool.js";

const pool = new Pool();

const REQUEST: CostRequest = {
  promptTokens: 160,
  blockSize: 16,
  requestBlocks: 10,
  sequenceBlocks: 0,
  track: true,
  decodeRole: false,
  taints: false,
};

describe("vectors of spec/scheduling.md §4.3 and spec/plugins.md §4.1", () => {
  const vector = (rows: Partial<CostRow>[], params: Partial<CostParams> = {}) => {
    pool.fill(rows.map((row) => ({ ...IDLE_ROW, ...row })));
    return pool.score(REQUEST, { ...DEFAULT_PARAMS, ...params });
  };

  test("overlap and decode load", () => {
    const rows = [
      { device: 2, decode: 10 },
      { device: 5, decode: 5 },
      { device: 8, decode: 9 },
    ];
    expect(vector(rows)).toEqual([18, 10, 11]);
    expect(vector(rows.map((row, i) => (i === 1 ? { ...row, prefill: 320 } : row)))).toEqual([18, 30, 11]);
  });

  test("decay halves the credit at one request of backlog", () => {
    expect(vector([{ device: 10, prefill: 160 }, {}], { decay: 1 })).toEqual([15, 10]);
  });

  test("worked numbers", () => {
    const rows = [{ decode: 20 }, { prefill: 64, device: 6, decode: 22 }, { device: 2, host: 4, decode: 25 }];
    expect(vector(rows)).toEqual([30, 30, 30]);
    expect(vector(rows, { decay: 2 })[1]).toBeCloseTo(32 + 2 / 3, 12);
  });

  test("more cached than asked for", () => {
    expect(vector([{ device: 12.5 }], { credit: 0.96 })).toEqual([0.5]);
  });

  test("active blocks of the prompt are not charged twice", () => {
    pool.fill([
      { ...IDLE_ROW, decode: 7, active: 7 },
      { ...IDLE_ROW, decode: 7 },
    ]);
    expect(pool.score({ ...REQUEST, sequenceBlocks: 10 })).toEqual([20, 27]);
  });

  test("tier credits stay at credit 0; plain decode keeps its credit", () => {
    expect(vector([{ device: 4, host: 4 }], { credit: 0 })).toEqual([7]);
    pool.fill([{ ...IDLE_ROW, device: 4, decode: 10 }]);
    const decode = { ...REQUEST, track: false, decodeRole: true };
    expect(pool.score(decode)).toEqual([6]);
    expect(pool.score(decode, { ...DEFAULT_PARAMS, credit: 0 })).toEqual([10]);
    expect(pool.score({ ...decode, decodeRole: false })).toEqual([10]);
  });
});

function randomRow(random: Random): CostRow {
  const some = (n: number) => (random.below(3) ? random.below(n) : 0);
  const active = some(20);
  return {
    eligible: random.below(8) > 0,
    prefill: some(100_000),
    decode: active + some(5000),
    requests: some(200),
    device: some(300),
    host: some(40),
    disk: some(40),
    shared: some(40),
    active,
    taint: some(3) ? random.double() * 4 - 2 : 0,
  };
}

function randomParams(random: Random): CostParams {
  const one = (values: number[]) => values[random.below(values.length)]!;
  return {
    credit: one([1, 0, 1.5, 0.3]),
    decay: one([0, 0, 1, 0.7]),
    prefillScale: one([1, 1, 2.5, 0]),
    requestWeight: one([0, 0, 0.5, 4]),
    hostWeight: one([0.75, 0.5, 0.3, 0]),
    diskWeight: one([0.25, 0.1, 0]),
    sharedWeight: one([0, 0.5, 0.7]),
    temperature: 0,
  };
}

function randomRequest(random: Random): CostRequest {
  const blockSize = [1, 16, 24, 64, 7][random.below(5)]!;
  const promptTokens = 1 + random.below(40_000);
  return {
    promptTokens,
    blockSize,
    requestBlocks: Math.ceil(promptTokens / blockSize),
    sequenceBlocks: random.below(2) ? Math.floor(promptTokens / blockSize) : 0,
    track: random.below(4) > 0,
    decodeRole: random.below(2) === 0,
    taints: random.below(3) === 0,
  };
}

describe("random rows, parameters and requests", () => {
  test("vector path, one-row path and oracle agree to the bit", () => {
    const random = new Random(11n);
    for (let round = 0; round < 1500; round++) {
      const rows = Array.from({ length: 1 + random.below(70) }, () => randomRow(random));
      const params = randomParams(random);
      const request = randomRequest(random);
      pool.fill(rows);
      const got = pool.score(request, params);
      const want = rowCosts(rows, params, request);
      const least = Math.min(...rows.filter((r) => r.eligible).map((r) => r.prefill));
      for (const [i, row] of rows.entries()) {
        const one = pool.explain(i);
        if (row.eligible) expect(one.cost).toBe(got[i]);
        const { terms } = rowCost(row, params, request, least);
        if (request.taints) {
          expect(Math.abs(one.terms.taintMultiplier / terms.taintMultiplier - 1)).toBeLessThan(1e-14);
          if (row.eligible) expect(Math.abs(got[i]! - want[i]!)).toBeLessThanOrEqual(1e-12 * want[i]!);
        } else {
          expect(one.terms).toEqual(terms);
          expect(got[i]).toBe(want[i]);
        }
      }
    }
  });

  test("flags that say a column is empty change nothing where it is", () => {
    const random = new Random(12n);
    for (let round = 0; round < 300; round++) {
      const empty = { host: 0, disk: 0, shared: 0, eligible: true };
      const rows = Array.from({ length: 1 + random.below(70) }, () => ({ ...randomRow(random), ...empty }));
      const params = { ...randomParams(random), decay: 0 };
      const request = { ...randomRequest(random), track: true };
      pool.fill(rows);
      const full = pool.score(request, params, FLAG.lower | FLAG.shared | FLAG.mask);
      expect(pool.score(request, params, 0)).toEqual(full);
    }
  });
});

describe("C34: every cost is total", () => {
  test("all rows at zero", () => {
    pool.fill(Array.from({ length: 5 }, () => IDLE_ROW));
    expect(pool.score(REQUEST, { ...DEFAULT_PARAMS, decay: 1 })).toEqual([10, 10, 10, 10, 10]);
  });

  test("a single row", () => {
    pool.fill([IDLE_ROW]);
    expect(pool.score(REQUEST)).toEqual([10]);
  });

  test("an empty prompt, with decay", () => {
    pool.fill([{ ...IDLE_ROW, prefill: 100 }, IDLE_ROW]);
    const nothing = { ...REQUEST, promptTokens: 0, requestBlocks: 0 };
    expect(pool.score(nothing, { ...DEFAULT_PARAMS, decay: 1 })).toEqual([6.25, 0]);
  });

  test("no rows, and no eligible rows", () => {
    pool.fill([]);
    expect(pool.score(REQUEST)).toEqual([]);
    expect(pool.kernel.pickRow(0)).toBe(-1);
    expect(pool.kernel.pickRow(1)).toBe(-1);
    pool.fill(Array.from({ length: 5 }, () => ({ ...IDLE_ROW, eligible: false })));
    expect(pool.score(REQUEST)).toEqual(Array(5).fill(Infinity));
    expect(pool.kernel.pickRow(0)).toBe(-1);
    expect(pool.kernel.pickRow(1)).toBe(-1);
    expect(pool.probabilities(0)).toEqual([0, 0, 0, 0, 0]);
    expect(pool.probabilities(1)).toEqual([0, 0, 0, 0, 0]);
  });

  test("parameters at their limits leave eligible rows finite", () => {
    pool.fill([
      { ...IDLE_ROW, requests: 3, taint: -9, prefill: 1e9 },
      { ...IDLE_ROW, requests: 1, device: 9 },
    ]);
    const huge = Number.MAX_VALUE;
    const params = { ...DEFAULT_PARAMS, requestWeight: huge, credit: huge, prefillScale: huge, decay: huge };
    for (const c of pool.score({ ...REQUEST, taints: true }, params)) expect(Number.isFinite(c)).toBe(true);
    expect(pool.kernel.pickRow(0)).toBe(1);
  });
});
