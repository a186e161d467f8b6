import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Pool } from "./pool.js";

interface Draws {
  generators: { seed: string; u64: string[]; doubles: number[]; ties_of_4: number[] }[];
}
const { generators } = JSON.parse(readFileSync(new URL("../../golden/draws.json", import.meta.url), "utf8")) as Draws;

const pool = new Pool();
const { kernel } = pool;

describe.each(generators)("draws.json, seed $seed", ({ seed, u64, doubles, ties_of_4 }) => {
  test("words", () => {
    kernel.randomSeed(BigInt(seed));
    expect(u64.map(() => BigInt.asUintN(64, kernel.randomNext()).toString())).toEqual(u64);
  });

  test("doubles", () => {
    kernel.randomSeed(BigInt(seed));
    expect(doubles.map(() => kernel.randomUnit())).toEqual(doubles);
  });

  test("choices among four equal rows", () => {
    pool.reset(4);
    pool.setCosts([7, 7, 7, 7]);
    kernel.randomSeed(BigInt(seed));
    expect(ties_of_4.map(() => kernel.pickRow(0))).toEqual(ties_of_4);
  });
});

test("a saved state continues as the original does", () => {
  pool.reset(1);
  const at = kernel.take(32) >>> 0;
  kernel.randomSeed(5n);
  kernel.randomNext();
  kernel.randomSave(at);
  const expected = [kernel.randomNext(), kernel.randomNext()];
  kernel.randomSeed(6n);
  expect(kernel.randomRestore(at)).toBe(1);
  expect([kernel.randomNext(), kernel.randomNext()]).toEqual(expected);
});

test("the state of all zeros is refused", () => {
  pool.reset(1);
  const at = kernel.take(32) >>> 0;
  new Uint8Array(kernel.memory.buffer, at, 32).fill(0);
  kernel.randomSeed(5n);
  const first = kernel.randomNext();
  kernel.randomSeed(5n);
  expect(kernel.randomRestore(at)).toBe(0);
  expect(kernel.randomNext()).toBe(first);
});
