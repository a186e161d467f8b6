import { describe, expect, test } from "vitest";
import { defaultConfig } from "../../src/core/config.js";
import type { PolicyProfile, PolicyProfiles } from "../../src/plugins/policy/contract.js";
import { PolicyClasses, profileOf, syntheticProfile } from "../../src/scheduling/queue/policy-class.js";
import { profile } from "./classifier/harness.js";

describe("the queues of spec plugins.md §2.6", () => {
  const classes = new PolicyClasses(profile);
  const rows: [name: string | undefined, uncached: number, client: string, classifier: string | undefined][] = [
    ["vip", 0, "vip", "vip"],
    ["vip", 9999, "vip", "vip"],
    ["regular", 0, "reg_warm", "reg_warm"],
    ["regular", 2047, "reg_warm", "reg_warm"],
    ["regular", 2048, "reg_cold", "reg_cold"],
    ["regular", 2 ** 40, "reg_cold", "reg_cold"],
    [undefined, 2047, "reg_warm", undefined],
    [undefined, 2048, "reg_cold", undefined],
    ["nope", 10, "reg_warm", undefined],
    ["", 10, "reg_warm", undefined],
    ["VIP", 10, "reg_warm", undefined],
    ["reg_cold", 10, "reg_warm", undefined],
    ["reg_warm", 5000, "reg_cold", undefined],
    ["warm", 5000, "reg_cold", undefined],
    ["default", 10, "reg_warm", undefined],
    ["__proto__", 10, "reg_warm", undefined],
    ["constructor", 10, "reg_warm", undefined],
  ];
  test.each(rows)("%s with %d uncached tokens", (name, uncached, client, classifier) => {
    expect(classes.forClient(name, uncached).name).toBe(client);
    if (name === undefined) return;
    expect(classes.named(name, uncached)?.name).toBe(classifier);
    expect(classes.has(name)).toBe(classifier !== undefined);
  });

  test("a class keeps how it queues", () => {
    expect(classes.forClient(undefined, 0)).toBe(profile.policyClasses[0]);
  });
});

test("without a profile there is one class, which goes by default only", () => {
  const classes = new PolicyClasses(syntheticProfile(defaultConfig));
  for (const name of [undefined, "default", "anything", "all"]) {
    expect(classes.forClient(name, 5000)).toMatchObject({ name: "default", quantum: 1, queuePolicy: "fcfs" });
  }
  expect(classes.named("default", 5000)?.name).toBe("default");
  expect(["all", "anything", ""].filter((name) => classes.has(name))).toEqual([]);
});

test("a model has its own profile, else the root one, else the synthetic one", () => {
  const only: PolicyProfile = {
    defaultPolicyFamily: "only",
    uncachedIslBuckets: [{ minTokens: 0, bucket: "all" }],
    policyClasses: [{ name: "only_all", policyFamily: "only", cacheBucket: "all", queuePolicy: "fcfs", quantum: 1024 }],
  };
  const models = new Map([["org/big-model", only]]);
  const find = (profiles: PolicyProfiles | undefined, model: string) => profileOf(profiles, model, defaultConfig);
  expect(find({ profile, models }, "org/big-model")).toBe(only);
  expect(find({ profile, models }, "org/Big-Model")).toBe(profile);
  expect(find({ models }, "other")).toEqual(syntheticProfile(defaultConfig));
  expect(find(undefined, "other")).toEqual(syntheticProfile(defaultConfig));
  expect(new PolicyClasses(only).has("vip")).toBe(false);
});
