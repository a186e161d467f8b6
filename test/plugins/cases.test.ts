// Faults that users met in other routers (C45, C47): refused when the file is read, with place and suggestion.
import { expect, test } from "vitest";
import { parsePolicy } from "../../src/plugins.js";

const profile = `default_policy_family: f
uncached_isl_buckets: [{min_tokens: 0, bucket: warm}]
policy_classes: [{name: c, policy_family: f, cache_bucket: warm, quantum: 1}]
`;
const one = "{name: hot, type: dynamo-two-tier-cost-fn}";

test.each([
  [
    "a role that names an unknown instance",
    `worker_selection:\n  aggregated: hott\n  instances: [${one}]\n`,
    { code: "unknown_reference", path: "worker_selection.aggregated", line: 2, column: 15, suggestion: "hot" },
  ],
  [
    "two instances of one name",
    `worker_selection:\n  instances:\n    - ${one}\n    - ${one}\n`,
    { code: "duplicate_name", path: "worker_selection.instances[1].name", line: 4, column: 14 },
  ],
  [
    "parameters that are no mapping",
    "worker_selection:\n  instances:\n    - name: hot\n      type: t\n      parameters: 3\n",
    { code: "invalid_type", path: "worker_selection.instances[0].parameters", line: 5, column: 19 },
  ],
  [
    "a class with an unknown bucket",
    profile.replace("cache_bucket: warm", "cache_bucket: wram"),
    { code: "unknown_reference", path: "policy_classes[0].cache_bucket", line: 3, column: 60, suggestion: "warm" },
  ],
])("C45: %s", async (_what, text, expected) => {
  const error = await parsePolicy(text).catch((thrown) => thrown);
  expect(error).toMatchObject({
    code: expected.code,
    path: expected.path,
    line: expected.line,
    column: expected.column,
  });
  expect(error.details.errors[0]).toMatchObject(expected);
});

test.each([
  ["policy_clases", "policy_classes", profile.replace("policy_classes", "policy_clases"), 3],
  ["request_clasifier", "request_classifier", "request_clasifier: {type: gate}\n", 1],
])("C47: %s is an unknown key, not an ignored one", async (path, suggestion, text, line) => {
  const error = await parsePolicy(text).catch((thrown) => thrown);
  expect(error.details.errors).toEqual([
    expect.objectContaining({ code: "unknown_key", path, line, column: 1, suggestion }),
  ]);
});
