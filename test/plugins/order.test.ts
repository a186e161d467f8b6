// The order in which a file says things means nothing (CASES: C40).
import fc from "fast-check";
import { expect, test } from "vitest";
import { stringify } from "yaml";
import { parsePolicy } from "../../src/plugins/policy/parse.js";
import { problemsOf } from "../../src/plugins/problem.js";
import { createRegistry, type RouterPluginRegistry } from "../../src/plugins/registry.js";
import { refusal } from "./refusal.js";

const root = {
  worker_selection: {
    prefill: "hot-cache",
    decode: "spread",
    encode: "hot-cache",
    instances: [
      { name: "hot-cache", type: "t", parameters: { weight: 2, other: 1 } },
      { name: "spread", type: "t" },
      { name: "unused", type: "unlinked" },
    ],
  },
  request_classifier: { type: "gate", parameters: { limit: 1 } },
  default_policy_family: "regular",
  uncached_isl_buckets: [
    { min_tokens: 0, bucket: "warm" },
    { min_tokens: 64, bucket: "cold" },
  ],
  policy_classes: [
    { name: "reg_warm", policy_family: "regular", cache_bucket: "warm", quantum: 1 },
    { name: "reg_cold", policy_family: "regular", cache_bucket: "cold", quantum: 2 },
    { name: "vip", quantum: 3 },
  ],
};

/** The same mapping with its keys in the order of `keys`, drawn anew at each level; `lists` names what has no order. */
function shuffled(value: unknown, random: () => number, lists: readonly string[], key = ""): unknown {
  const mixed = <T>(items: readonly T[]): T[] =>
    items
      .map((item) => [random(), item] as const)
      .sort(([a], [b]) => a - b)
      .map(([, item]) => item);
  if (Array.isArray(value)) {
    const items = value.map((item) => shuffled(item, random, lists));
    return lists.includes(key) ? mixed(items) : items;
  }
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    mixed(Object.entries(value)).map(([name, item]) => [name, shuffled(item, random, lists, name)]),
  );
}

const seeded = fc
  .infiniteStream(fc.double({ min: 0, max: 1, noNaN: true }))
  .map((stream) => () => stream.next().value as number);

function registryOf(calls: string[]): RouterPluginRegistry {
  return createRegistry((registry) => {
    registry.registerWorkerSelection("t", ({ raw }) => {
      calls.push(JSON.stringify(Object.entries(raw).sort()));
      return () => expect.fail("no pool is made here");
    });
    registry.registerRequestClassifier("gate", ({ raw }) => {
      calls.push(JSON.stringify(raw));
      return () => ({});
    });
  });
}

test("keys and instances in any order resolve alike, with the providers called in the same order", async () => {
  const of = async (document: unknown) => {
    const calls: string[] = [];
    const policy = await parsePolicy(stringify(document));
    const { roles, singles, errors, plugins } = registryOf(calls).resolveAll(policy);
    const classes = [...policy.profile!.policyClasses].sort((a, b) => (a.name < b.name ? -1 : 1));
    const { uncachedIslBuckets, defaultPolicyFamily } = policy.profile!;
    return {
      roles,
      singles,
      errors,
      calls,
      custom: [...plugins.customRoles],
      classes,
      uncachedIslBuckets,
      defaultPolicyFamily,
    };
  };
  const expected = await of(root);
  expect(expected.calls).toEqual(['[["other",1],["weight",2]]', "[]", '{"limit":1}']);
  await fc.assert(
    fc.asyncProperty(seeded, async (random) => {
      expect(await of(shuffled(root, random, ["instances", "policy_classes"]))).toEqual(expected);
    }),
    { numRuns: 100 },
  );
});

test("the mistakes of a file are the same in any order of its keys", async () => {
  const broken = {
    ...root,
    worker_selection: { ...root.worker_selection, decode: "nobody", agregated: "default" },
    policy_classes: root.policy_classes.slice(1),
    request_classifier: { type: "default" },
  };
  const of = async (document: unknown) => {
    const text = stringify(document);
    const problems = problemsOf(await refusal(() => parsePolicy(text)));
    // In the order of the file, whatever that is.
    const offsets = problems.map(({ line, column }) => line! * 1000 + column!);
    expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
    return problems.map(({ code, path }) => `${code} ${path}`).sort();
  };
  const expected = [
    "incomplete_matrix policy_classes",
    "reserved_default request_classifier.type",
    "unknown_key worker_selection.agregated",
    "unknown_reference worker_selection.decode",
  ];
  await fc.assert(
    fc.asyncProperty(seeded, async (random) => {
      expect(await of(shuffled(broken, random, []))).toEqual(expected);
    }),
    { numRuns: 50 },
  );
});
