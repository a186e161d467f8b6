import { expect, test } from "vitest";
import { closest } from "../../src/core/closest.js";

test.each([
  ["policy_clases", ["policy_classes", "default_policy_family"], "policy_classes"],
  ["wram", ["cold", "warm"], "warm"],
  ["hotcache", ["spread", "hot-cache"], "hot-cache"],
  ["agregated", ["aggregated", "aggregate"], "aggregated"],
  ["nowhere", ["hot-cache", "spread", "default"], undefined],
  ["xyz", [], undefined],
  // Too short to tell one letter from another.
  ["q", ["w", "z"], undefined],
  ["", ["a"], undefined],
  ["typ", ["type", "name"], "type"],
  ["params", ["parameters", "name"], undefined],
])("%s of %j is %s", (name, names, meant) => {
  expect(closest(name, names)).toBe(meant);
});

test("the first of equals is taken", () => {
  expect(closest("kw", ["kv", "kx"])).toBe("kv");
});
