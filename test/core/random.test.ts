import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { Random } from "../../src/core/random.js";

interface Golden {
  generators: { seed: string; u64: string[]; doubles: number[]; ties_of_4: number[] }[];
}
const golden = JSON.parse(readFileSync(new URL("../golden/draws.json", import.meta.url), "utf8")) as Golden;

describe.each(golden.generators)("seed $seed", ({ seed, u64, doubles, ties_of_4 }) => {
  test("draws the golden integers, doubles and tie choices", () => {
    const integers = new Random(BigInt(seed));
    expect(u64.map(() => integers.u64().toString())).toEqual(u64);
    const uniform = new Random(BigInt(seed));
    expect(doubles.map(() => uniform.double())).toEqual(doubles);
    const ties = new Random(BigInt(seed));
    expect(ties_of_4.map(() => ties.below(4))).toEqual(ties_of_4);
  });
});

test("between() includes both ends and nothing else", () => {
  const random = new Random(1n);
  const seen = new Set(Array.from({ length: 200 }, () => random.between(3, 6)));
  expect([...seen].sort()).toEqual([3, 4, 5, 6]);
});
