import { describe, expect, test } from "vitest";
import { z } from "zod";
import { pluginParameters } from "../../src/plugins/plugin-parameters.js";
import { mostPolicyBytes, parsePolicy } from "../../src/plugins/policy/parse.js";
import { problemsOf } from "../../src/plugins/problem.js";
import { refusal } from "./refusal.js";
import { examples } from "./worked-examples.js";

const problems = async (text: string | Uint8Array) =>
  problemsOf(await refusal(() => parsePolicy(text))).map(({ code, path, line, column }) => [code, path, line, column]);

describe("the examples of the spec (§2.6)", () => {
  test("worker selection, two pools", async () => {
    const policy = await parsePolicy(examples.selection, { file: "a.yaml" });
    expect(policy.file).toBe("a.yaml");
    expect(policy.profile).toBeUndefined();
    expect(policy.models.size).toBe(0);
    expect(policy.requestClassifier).toBeUndefined();
    const { roles, roleAt, instances } = policy.workerSelection!;
    expect(roles).toEqual({ aggregated: "default", prefill: "hot-cache", decode: "spread" });
    expect(roleAt.decode).toEqual({ path: "worker_selection.decode", line: 3, column: 11 });
    expect(instances.map(({ name, type, parameters }) => ({ name, type, parameters }))).toEqual([
      { name: "hot-cache", type: "dynamo-two-tier-cost-fn", parameters: { cache_threshold: 0.25 } },
      {
        name: "spread",
        type: "dynamo-two-tier-cost-fn",
        parameters: { cache_threshold: 1, balance_abs_threshold: 4 },
      },
    ]);
    expect(instances[1]!.typeAt).toEqual({ path: "worker_selection.instances[1].type", line: 10, column: 13 });
    expect(instances[1]!.parameterAt(["balance_abs_threshold"], "key")).toEqual({
      path: "worker_selection.instances[1].parameters.balance_abs_threshold",
      line: 11,
      column: 42,
    });
  });

  test("classifier", async () => {
    const { requestClassifier, workerSelection } = await parsePolicy(examples.classifier);
    expect(workerSelection).toBeUndefined();
    expect(requestClassifier).toMatchObject({ type: "per-session-gate", parameters: { max_parallel: 1 } });
    expect(requestClassifier!.parameterAt(["max_parallel"], "value")).toEqual({
      path: "request_classifier.parameters.max_parallel",
      line: 4,
      column: 19,
    });
  });

  test("queues", async () => {
    const { profile, models } = await parsePolicy(examples.queues);
    expect(profile).toEqual({
      defaultPolicyFamily: "regular",
      uncachedIslBuckets: [
        { minTokens: 0, bucket: "warm" },
        { minTokens: 2048, bucket: "cold" },
      ],
      policyClasses: [
        {
          name: "reg_warm",
          policyFamily: "regular",
          cacheBucket: "warm",
          queuePolicy: "wspt",
          quantum: 2048,
          prefillBusyThresholdFrac: 16,
        },
        {
          name: "reg_cold",
          policyFamily: "regular",
          cacheBucket: "cold",
          queuePolicy: "fcfs",
          quantum: 512,
          prefillBusyThresholdFrac: 16,
          requestQueueLimitPerWorker: 64,
        },
        { name: "vip", queuePolicy: "fcfs", quantum: 4096, prefillBusyThresholdFrac: 16 },
      ],
    });
    expect([...models]).toEqual([
      [
        "org/big-model",
        {
          defaultPolicyFamily: "only",
          uncachedIslBuckets: [{ minTokens: 0, bucket: "all" }],
          policyClasses: [
            { name: "only_all", policyFamily: "only", cacheBucket: "all", queuePolicy: "fcfs", quantum: 1024 },
          ],
        },
      ],
    ]);
  });

  test.each(Object.keys(examples) as (keyof typeof examples)[])("%s is frozen to the last value", async (name) => {
    const policy = await parsePolicy(examples[name]);
    const open: unknown[] = [];
    const walk = (value: unknown) => {
      if (typeof value !== "object" || value === null) return;
      if (!Object.isFrozen(value)) open.push(value);
      for (const part of value instanceof Map ? value.values() : Object.values(value)) walk(part);
    };
    walk(policy);
    expect(open).toEqual([]);
    const models = policy.models as Map<string, unknown>;
    expect(() => models.set("x", {})).toThrow(TypeError);
    expect(() => models.delete("org/big-model")).toThrow(TypeError);
    expect(() => models.clear()).toThrow(TypeError);
  });
});

describe("what is also a policy file", () => {
  const role = { path: "worker_selection.aggregated", line: 1, column: 32 };
  test.each([
    ["JSON", '{"worker_selection":{"aggregated":"default"}}', { ...role, column: 35 }],
    ["bytes", new TextEncoder().encode("worker_selection: {aggregated: default}"), role],
    ["a byte order mark", "\uFEFFworker_selection: {aggregated: default}", role],
    [
      "its bytes",
      new Uint8Array([0xef, 0xbb, 0xbf, ...new TextEncoder().encode("worker_selection: {aggregated: default}")]),
      role,
    ],
    ["Windows line ends", "# a\r\nworker_selection: {aggregated: default}\r\n", { ...role, line: 2 }],
    ["a marked beginning", "---\nworker_selection: {aggregated: default}\n...\n", { ...role, line: 2 }],
    ["YAML 1.1 by its own word", "%YAML 1.1\n---\nworker_selection: {aggregated: default}\n", { ...role, line: 3 }],
  ])("%s", async (_, text, place) => {
    const { workerSelection } = await parsePolicy(text);
    expect(workerSelection?.roles).toEqual({ aggregated: "default" });
    expect(workerSelection?.roleAt.aggregated).toEqual(place);
  });

  test("a file of models alone, of a classifier alone, of unselected instances", async () => {
    const profile =
      "{default_policy_family: a, uncached_isl_buckets: [{min_tokens: 0, bucket: b}], policy_classes: [{name: c, policy_family: a, cache_bucket: b, quantum: 1}]}";
    expect((await parsePolicy(`models: {m: ${profile}}`)).models.get("m")?.policyClasses).toHaveLength(1);
    expect((await parsePolicy("request_classifier: {type: x}")).requestClassifier?.parameters).toEqual({});
    const { workerSelection } = await parsePolicy("worker_selection: {instances: [{name: a, type: t}]}");
    expect(workerSelection).toMatchObject({ roles: {}, instances: [{ name: "a", type: "t", parameters: {} }] });
  });

  test("an alias stands for its value, and its place is the value's", async () => {
    const text =
      "worker_selection:\n  instances:\n  - {name: a, type: t, parameters: &p {x: -0, y: [1]}}\n  - {name: b, type: t, parameters: *p}\n";
    const [a, b] = (await parsePolicy(text)).workerSelection!.instances;
    expect(b!.parameters).toBe(a!.parameters);
    expect(JSON.stringify(b!.parameters)).toBe('{"x":0,"y":[1]}');
    expect(b!.parameterAt(["y", 0], "value")).toEqual({
      path: "worker_selection.instances[1].parameters.y[0]",
      line: 3,
      column: 51,
    });
  });

  test("an anchor may stand for nothing", async () => {
    const error = await refusal(() => parsePolicy("a: &nothing\nworker_selection: *nothing\n"));
    expect(problemsOf(error).map(({ code, path }) => [code, path])).toContainEqual([
      "invalid_type",
      "worker_selection",
    ]);
  });

  test("parameters keep every bit of a long integer, and keys that objects are born with", async () => {
    const text =
      "request_classifier: {type: t, parameters: {worker: 18446744073709551615, low: -9007199254740993, hex: 0xffffffffffffffff, real: 1e20, constructor: 1, toString: 2}}";
    expect((await parsePolicy(text)).requestClassifier?.parameters).toEqual({
      worker: "18446744073709551615",
      low: "-9007199254740993",
      hex: "18446744073709551615",
      real: 1e20,
      constructor: 1,
      toString: 2,
    });
  });

  test("nor a number of more digits than any number has", async () => {
    const digits = "1234567890".repeat(31);
    const policy = await parsePolicy(
      `request_classifier: {type: t, parameters: {n: ${digits}, low: -${digits}, real: .inf}}`,
    );
    expect(policy.requestClassifier?.parameters).toEqual({
      n: digits,
      low: `-${digits}`,
      real: Number.POSITIVE_INFINITY,
    });
  });
});

describe("what is no policy file", () => {
  test.each([
    ["nothing", "", [["empty_section", "", 1, 1]]],
    ["only a comment", "\n# nothing\n", [["empty_section", "", 1, 1]]],
    ["an empty mapping", "\n  {}\n", [["empty_section", "", 1, 1]]],
    ["null", "null\n", [["invalid_type", "", 1, 1]]],
    ["a list", "# a\n- b\n", [["invalid_type", "", 2, 1]]],
    ["a number", "3", [["invalid_type", "", 1, 1]]],
    ["models without a model", "models: {}\n", [["empty_section", "models", 1, 1]]],
    ["a section with nothing in it", "worker_selection: {}\n", [["empty_section", "worker_selection", 1, 1]]],
    ["an empty list of instances", "worker_selection: {instances: []}", [["empty_section", "worker_selection", 1, 1]]],
    ["null for a mapping", "worker_selection: null\n", [["invalid_type", "worker_selection", 1, 19]]],
    [
      "nothing for a mapping",
      "a: 1\nworker_selection:\n",
      [
        ["unknown_key", "a", 1, 1],
        ["invalid_type", "worker_selection", 2, 1],
      ],
    ],
    ["a tab for indentation", "worker_selection:\n  aggregated: default\n\tprefill: default\n", [["syntax", "", 3, 1]]],
    [
      "a quote that nothing closes",
      'worker_selection:\n  aggregated: "hot\n  prefill: default\n',
      [["syntax", "", 2, 15]],
    ],
    ["a mapping that nothing closes", "worker_selection: { aggregated: default\n", [["syntax", "", 1, 19]]],
    ["the inner of two lists", "worker_selection:\n  instances: [{ name: [a }]\n", [["syntax", "", 2, 23]]],
    ["two documents", "worker_selection: {aggregated: default}\n---\na: 1\n", [["syntax", "", 2, 1]]],
    ["a tag", "worker_selection: !policy {aggregated: default}", [["syntax", "", 1, 19]]],
    ["a binary value", "worker_selection: {aggregated: !!binary aGk=}", [["syntax", "", 1, 32]]],
    ["a list for a key", "? [a]\n: b\n", [["syntax", "", 1, 3]]],
    ["an alias of nothing", "worker_selection: *nothing\n", [["syntax", "", 1, 19]]],
    ["an alias in itself", "worker_selection: &a {instances: [*a]}\n", [["syntax", "", 1, 35]]],
    [
      "a merge key in parameters",
      "request_classifier: {type: a, parameters: {<<: {b: 1}}}",
      [["unknown_key", 'request_classifier.parameters["<<"]', 1, 44]],
    ],
    [
      "the prototype",
      "request_classifier: {type: a, parameters: {__proto__: {b: 1}}}",
      [["unknown_key", "request_classifier.parameters.__proto__", 1, 44]],
    ],
    [
      "the prototype of models",
      '{"models":{"__proto__":{}},"worker_selection":{"aggregated":"default"}}',
      [["unknown_key", "models.__proto__", 1, 12]],
    ],
  ])("%s", async (_, text, expected) => {
    expect(await problems(text)).toEqual(expected);
  });

  test("neither text nor bytes", async () => {
    for (const value of [undefined, null, 3, {}, []]) {
      expect(await refusal(() => parsePolicy(value as unknown as string))).toMatchObject({ code: "invalid_type" });
    }
  });

  test("bytes that are no UTF-8, from the line that they are on", async () => {
    const bytes = new Uint8Array([...new TextEncoder().encode("worker_selection:\n  aggregated: "), 0xff, 0xfe]);
    expect(await problems(bytes)).toEqual([["unreadable", "", 2, 1]]);
    // UTF-16, as an editor may have saved it.
    expect(await problems(new Uint8Array([0xff, 0xfe, 0x61, 0]))).toEqual([["unreadable", "", 1, 1]]);
  });
});

describe("a hostile file is refused in time", () => {
  /** As much of one text as fits, or as many bytes of it. */
  const filled = (unit: string, bytes = mostPolicyBytes) => unit.repeat(Math.floor(bytes / unit.length));
  const bomb = ["a: &a [x,x,x,x,x,x,x,x,x,x]", ..."bcdefgh"].map((line, i) =>
    i === 0 ? line : `${line}: &${line} [${filled(`*${"abcdefgh"[i - 1]},`, 30)}]`,
  );
  const cells = (count: number) => {
    const numbers = Array.from({ length: count }, (_, i) => i);
    return [
      "default_policy_family: f0\nuncached_isl_buckets:",
      ...numbers.map((i) => `- {min_tokens: ${i}, bucket: b${i}}`),
      "policy_classes:",
      ...numbers.map((i) => `- {name: n${i}, policy_family: f${i}, cache_bucket: b${i}, quantum: 1}`),
    ].join("\n");
  };
  test.each([
    ["10 MB", filled("# a comment\n", 10_000_000), "out_of_range"],
    ["an alias bomb", bomb.join("\n"), "out_of_range"],
    ["lists in lists", filled("["), "out_of_range"],
    ["quotes in keys", filled("? 'a\n", 100_000), "syntax"],
    ["fewer lists in lists", filled("- ", 100_000), "syntax"],
    ["mappings in mappings", filled("{a: ", 100_000), "syntax"],
    ["keys in keys", filled("? ", 100_000), "syntax"],
    [
      "levels through aliases",
      ["a0: &a0 [x]", ...Array.from({ length: 5000 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}]`)].join("\n"),
      "syntax",
    ],
    ["keys", Array.from({ length: 20_000 }, (_, i) => `key${i}: 1`).join("\n"), "unknown_key"],
    ["the same key", filled("a: 1\n", 100_000), "unknown_key"],
    ["documents", filled("---\n", 150_000), "syntax"],
    ["one long directive", filled("%"), "syntax"],
    ["directives", filled("%A\n", 150_000), "syntax"],
    ["quotes", filled('"', 140_000), "syntax"],
    ["anchors", filled("&a ", 140_000), "syntax"],
    ["newlines", filled("\n", 140_000), "empty_section"],
    ["one long name", `worker_selection: {aggregated: ${filled("a", 500_000)}}`, "unknown_reference"],
    ["one long key", `worker_selection: {"${filled("a", 500_000)}": b}`, "unknown_key"],
    ["digits", `worker_selection: {aggregated: ${filled("9", 500_000)}}`, "unknown_reference"],
    ["a matrix of millions", cells(2500), "incomplete_matrix"],
    ["references to nothing", cells(2000).replaceAll("cache_bucket: b", "cache_bucket: c"), "unknown_reference"],
  ])("%s", async (_, text, code) => {
    const begin = performance.now();
    const error = await refusal(() => parsePolicy(text));
    // Under a second on a machine of its own; this one may be busy.
    expect(performance.now() - begin).toBeLessThan(4000);
    expect(error.code).toBe(code);
    expect(error.message.length).toBeLessThan(500);
  });

  test("while a thousand models are not", async () => {
    const models = Array.from(
      { length: 1000 },
      (_, i) => `  model-${i}:
    default_policy_family: only
    uncached_isl_buckets: [{ min_tokens: 0, bucket: all }]
    policy_classes:
      - { name: only_all, policy_family: only, cache_bucket: all, quantum: 1024 }
`,
    );
    expect((await parsePolicy(`models:\n${models.join("")}`)).models.size).toBe(1000);
  });
});

describe("parameters", () => {
  const schema = z.strictObject({
    weight: z.number().min(0).max(10),
    limit: z.int().min(1).optional(),
    step: z.number().multipleOf(5).optional(),
    mode: z.enum(["fast", "slow"]).default("fast"),
    tenants: z.array(z.strictObject({ name: z.string().min(1) })).optional(),
    either: z.union([z.literal("all"), z.strictObject({ first: z.int() })]).optional(),
    shape: z
      .discriminatedUnion("kind", [
        z.strictObject({ kind: z.literal("square"), side: z.number() }),
        z.strictObject({ kind: z.literal("circle"), radius: z.number() }),
      ])
      .optional(),
    even: z
      .number()
      .refine((n) => n % 2 === 0, "must be even")
      .optional(),
  });
  const parametersOf = async (text: string) => {
    const { requestClassifier } = await parsePolicy(`request_classifier:\n  type: acme\n${text}`, { file: "p.yaml" });
    return pluginParameters(requestClassifier!, "p.yaml");
  };

  test("are what the schema makes of them", async () => {
    const parameters = await parametersOf("  parameters: { weight: 2, tenants: [{ name: a }] }\n");
    expect(parameters.raw).toEqual({ weight: 2, tenants: [{ name: "a" }] });
    expect(Object.isFrozen((parameters.raw.tenants as unknown[])[0])).toBe(true);
    expect(parameters.parse(schema)).toEqual({ weight: 2, mode: "fast", tenants: [{ name: "a" }] });
  });

  const at = (key: string, line: number, column: number) => [`request_classifier.parameters${key}`, line, column];
  test.each([
    ["{ wieght: 1 }", "unknown_key", at(".wieght", 3, 17), "weight"],
    ["{ weight: -1 }", "out_of_range", at(".weight", 3, 25)],
    ["{ weight: 11 }", "out_of_range", at(".weight", 3, 25)],
    ["{ weight: .inf }", "out_of_range", at(".weight", 3, 25)],
    ["{ weight: .nan }", "out_of_range", at(".weight", 3, 25)],
    ['{ weight: "1" }', "invalid_type", at(".weight", 3, 25)],
    ["{ weight: null }", "invalid_type", at(".weight", 3, 25)],
    ["{ limit: 1 }", "missing_key", at(".weight", 3, 15)],
    ["{ weight: 1, limit: 1.5 }", "invalid_type", at(".limit", 3, 35)],
    ["{ weight: 1, limit: 18446744073709551615 }", "out_of_range", at(".limit", 3, 35)],
    ["{ weight: 1, step: 7 }", "out_of_range", at(".step", 3, 34)],
    ["{ weight: 1, mode: fats }", "unsupported_value", at(".mode", 3, 34), "fast"],
    ["{ weight: 1, mode: 3 }", "invalid_type", at(".mode", 3, 34)],
    ["{ weight: 1, tenants: [{ name: a }, { nmae: b }] }", "unknown_key", at(".tenants[1].nmae", 3, 53), "name"],
    ['{ weight: 1, tenants: [{ name: "" }] }', "out_of_range", at(".tenants[0].name", 3, 46)],
    ["{ weight: 1, tenants: { name: a } }", "invalid_type", at(".tenants", 3, 37)],
    ["{ weight: 1, either: { first: x } }", "invalid_type", at(".either.first", 3, 45)],
    ["{ weight: 1, either: some }", "unsupported_value", at(".either", 3, 36)],
    ["{ weight: 1, shape: { kind: squares, side: 1 } }", "unsupported_value", at(".shape.kind", 3, 43), "square"],
    ["{ weight: 1, even: 3 }", "unsupported_value", at(".even", 3, 34)],
  ])("%s is %s", async (text, code, [path, line, column], suggestion?: string) => {
    const parameters = await parametersOf(`  parameters: ${text}\n`);
    const error = await refusal(() => parameters.parse(schema));
    expect(error).toMatchObject({ code, path, line, column, details: { provider: "acme" } });
    expect(error.details.suggestion).toBe(suggestion);
    expect(error.message.startsWith(`p.yaml:${line}:${column}: ${path} `)).toBe(true);
  });

  test("that are not there are missing from the section", async () => {
    const parameters = await parametersOf("");
    expect(await refusal(() => parameters.parse(schema))).toMatchObject({
      code: "missing_key",
      path: "request_classifier.parameters.weight",
      line: 2,
      column: 3,
    });
  });

  test("have all their faults in one error", async () => {
    const parameters = await parametersOf("  parameters: { weight: -1, step: 3, mod: fast }\n");
    const error = await refusal(() => parameters.parse(schema));
    expect(problemsOf(error).map(({ code, column, provider }) => [code, column, provider])).toEqual([
      ["out_of_range", 25, "acme"],
      ["out_of_range", 35, "acme"],
      ["unknown_key", 38, "acme"],
    ]);
  });

  test("may be checked by any schema with issues", async () => {
    const parameters = await parametersOf("  parameters: { a: 1, tokns: 2 }\n");
    const issues = [
      { path: ["a"], message: "not today" },
      { code: "unrecognized_keys", path: [], message: "unknown", keys: ["tokns"], known: ["a", "tokens"] },
    ];
    const error = await refusal(() => parameters.parse({ safeParse: () => ({ success: false, error: { issues } }) }));
    expect(problemsOf(error)).toMatchObject([
      { code: "unsupported_value", path: "request_classifier.parameters.a", line: 3, column: 20 },
      { code: "unknown_key", path: "request_classifier.parameters.tokns", line: 3, column: 23, suggestion: "tokens" },
    ]);
  });
});
