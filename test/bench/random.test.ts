import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Random } from "../../bench/baselines/random.js";

const { generators } = JSON.parse(readFileSync(new URL("../golden/draws.json", import.meta.url), "utf8")) as {
  generators: { seed: string; doubles: number[] }[];
};

describe("the baseline's generator", () => {
  it.each(generators)("draws what the kernel draws from seed $seed", ({ seed, doubles }) => {
    const random = new Random(BigInt(seed));
    expect(doubles.map(() => random.unit())).toEqual(doubles);
  });
});
