import { expect, test } from "vitest";
import { Distribution } from "../../src/replay/distribution.js";

test("statistics of known values", () => {
  const distribution = new Distribution();
  for (const value of [9, 2, 4, 4, 5, 4, 5, 7]) distribution.add(value);
  expect(distribution.statistics()).toEqual({
    ...{ mean: 5, min: 2, max: 9, std: 2 },
    // Sorted: 2 4 4 4 5 5 7 9; places 4 (of 3.5), 5, 6, 7, 7 from 0.
    ...{ median: 5, p75: 5, p90: 7, p95: 9, p99: 9 },
  });
});

test("many equal values weigh as many", () => {
  const distribution = new Distribution();
  distribution.add(10, 990);
  distribution.add(50, 10);
  expect(distribution.statistics()).toMatchObject({ mean: 10.4, median: 10, p95: 10, p99: 10, max: 50 });
  distribution.add(50);
  expect(distribution.statistics()).toMatchObject({ p99: 50 });
});

test("one value, mapped values, no value", () => {
  const distribution = new Distribution();
  expect(distribution.statistics()).toBeUndefined();
  distribution.add(4);
  expect(distribution.statistics()).toMatchObject({ mean: 4, median: 4, p99: 4, std: 0 });
  expect(distribution.map((value) => 1 / value).statistics()).toMatchObject({ mean: 0.25, max: 0.25 });
});
