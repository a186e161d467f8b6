import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { LeastLoaded, RandomChoice, RoundRobin } from "../../src/replay/modes.js";

test("round robin takes each worker in turn", () => {
  const router = new RoundRobin(3);
  expect(Array.from({ length: 7 }, () => router.route().worker)).toEqual([0, 1, 2, 0, 1, 2, 0]);
});

test("random draws the golden choices of its seed", () => {
  const golden = JSON.parse(readFileSync(new URL("../golden/draws.json", import.meta.url), "utf8")) as {
    generators: { seed: string; ties_of_4: number[] }[];
  };
  for (const { seed, ties_of_4 } of golden.generators) {
    const router = new RandomChoice(4, BigInt(seed));
    expect(ties_of_4.map(() => router.route().worker)).toEqual(ties_of_4);
  }
});

test("least loaded takes the worker with the fewest requests in flight", () => {
  const router = new LeastLoaded(3, 1n);
  const placed = Array.from({ length: 6 }, (_, request) => router.route(request).worker);
  expect([...placed].sort()).toEqual([0, 0, 1, 1, 2, 2]);
  expect(new Set(placed.slice(0, 3))).toEqual(new Set([0, 1, 2]));
  router.finished(2);
  expect(router.route(6).worker).toBe(placed[2]);
});

test("least loaded draws among ties", () => {
  const counts = [0, 0, 0, 0];
  const router = new LeastLoaded(4, 9n);
  for (let request = 0; request < 4000; request++) {
    counts[router.route(request).worker]!++;
    router.finished(request);
  }
  // Five standard deviations of a binomial distribution with p = 1/4.
  for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(137);
});
