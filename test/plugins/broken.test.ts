// Files as people write them wrongly: every mistake of each, with its place and what was meant.
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parsePolicy } from "../../src/plugins/policy/parse.js";
import { problemsOf } from "../../src/plugins/problem.js";
import { refusal } from "./refusal.js";

type Row = [code: string, path: string, line: number, column: number, suggestion?: string];

const expected: Record<string, Row[]> = {
  "misspelt-section": [["unknown_key", "policy_clases", 5, 1, "policy_classes"]],
  "dead-references": [
    ["unknown_reference", "worker_selection.prefill", 2, 12, "hot-cache"],
    ["unknown_reference", "worker_selection.decode", 3, 11],
    ["invalid_type", "worker_selection.instances[1].parameters", 9, 19],
    ["duplicate_name", "worker_selection.instances[2].name", 10, 13],
    ["unknown_reference", "default_policy_family", 12, 24, "regular"],
    ["unknown_reference", "policy_classes[0].cache_bucket", 19, 19, "warm"],
  ],
  "null-parameters": [
    // Nothing is written there, so the key stands for it.
    ["invalid_type", "worker_selection.instances[0].parameters", 6, 7],
    ["invalid_type", "request_classifier.parameters", 9, 15],
    ["invalid_type", "models.llama", 11, 10],
  ],
  "half-a-profile": [
    ["incomplete_profile", "default_policy_family", 1, 1],
    ["incomplete_profile", "policy_classes", 1, 1],
    ["incomplete_profile", 'models["org/big-model"].uncached_isl_buckets', 5, 5],
    ["incomplete_profile", 'models["org/big-model"].policy_classes', 5, 5],
  ],
  "gap-in-matrix": [
    ["incomplete_matrix", "policy_classes", 3, 1],
    ["duplicate_cell", "policy_classes[3]", 7, 5],
    ["name_clash", "policy_classes[4].name", 8, 13],
  ],
  "half-a-cell": [
    ["missing_key", "policy_classes[0].cache_bucket", 4, 5],
    ["missing_key", "policy_classes[1].policy_family", 5, 5],
    ["unknown_key", "policy_classes[2].polcy_family", 6, 18, "policy_family"],
    ["unknown_key", "policy_classes[2].quantun", 6, 61, "quantum"],
  ],
  buckets: [
    ["out_of_range", "models.llama.uncached_isl_buckets[0].min_tokens", 5, 23],
    ["not_increasing", "models.llama.uncached_isl_buckets[2].min_tokens", 7, 23],
    ["duplicate_name", "models.llama.uncached_isl_buckets[3].bucket", 8, 37],
    ["out_of_range", "models.llama.uncached_isl_buckets[4].min_tokens", 9, 23],
    ["bad_identifier", "models.llama.uncached_isl_buckets[4].bucket", 9, 35],
    ["empty_section", "models.llama.policy_classes", 10, 5],
  ],
  numbers: [
    ["out_of_range", "uncached_isl_buckets[1].min_tokens", 4, 19],
    ["out_of_range", "policy_classes[0].quantum", 9, 14],
    ["invalid_type", "policy_classes[0].prefill_busy_threshold", 10, 29],
    ["out_of_range", "policy_classes[0].prefill_busy_threshold_frac", 11, 34],
    ["out_of_range", "policy_classes[0].request_queue_limit_per_worker", 12, 37],
    ["out_of_range", "policy_classes[0].raw_isl_token_queue_limit_per_worker", 13, 43],
    ["invalid_type", "policy_classes[0].cached_token_queue_limit_per_worker", 14, 42],
    ["unsupported_value", "policy_classes[1].queue_policy", 18, 19, "fcfs"],
    ["out_of_range", "policy_classes[1].quantum", 19, 14],
    ["unsupported_value", "policy_classes[2].queue_policy", 21, 19, "wspt"],
    ["out_of_range", "policy_classes[2].prefill_busy_threshold_frac", 23, 34],
  ],
  "default-names": [
    ["unknown_key", "worker_selection.default", 2, 3],
    ["reserved_default", "worker_selection.instances[0].name", 5, 13],
    ["unknown_key", "worker_selection.instances[1].typ", 8, 7, "type"],
    ["unknown_key", "worker_selection.instances[1].params", 9, 7],
    ["reserved_default", "request_classifier.type", 11, 9],
    ["unknown_key", "request_classifier.paramaters", 12, 3, "parameters"],
  ],
  twice: [
    ["duplicate_key", "worker_selection.aggregated", 4, 3],
    ["duplicate_key", "request_classifier.parameters.limit", 5, 56],
    ["duplicate_key", "worker_selection", 6, 1],
  ],
  identifiers: [
    ["invalid_type", "worker_selection.aggregated", 2, 15],
    ["bad_identifier", "worker_selection.instances[0].name", 4, 15],
    ["bad_identifier", "worker_selection.instances[0].type", 4, 32],
    ["invalid_type", "worker_selection.instances[1].name", 5, 15],
    ["bad_identifier", "worker_selection.instances[1].type", 5, 24],
    ["invalid_type", "worker_selection.instances[2]", 6, 7],
    ["invalid_type", "request_classifier", 7, 21],
    ["bad_identifier", 'models[""]', 9, 3],
    ["bad_identifier", 'models[""].default_policy_family', 9, 32],
    ["invalid_type", 'models[""].uncached_isl_buckets', 9, 61],
    ["invalid_type", 'models[""].policy_classes', 9, 81],
  ],
  "merge-keys": [["unknown_key", 'worker_selection["<<"]', 4, 3]],
};

const folder = new URL("broken/", import.meta.url);
const textOf = (name: string) => readFileSync(new URL(`${name}.yaml`, folder), "utf8");

describe("each broken file", () => {
  test.each(Object.entries(expected))("%s", async (name, rows) => {
    const error = await refusal(() => parsePolicy(textOf(name), { file: `${name}.yaml` }));
    const found = problemsOf(error).map(({ code, path, line, column, suggestion }) =>
      suggestion === undefined ? [code, path, line, column] : [code, path, line, column, suggestion],
    );
    expect(found).toEqual(rows);
    const [code, path, line, column] = rows[0]!;
    expect(error).toMatchObject({ code, path, line, column, details: { file: `${name}.yaml` } });
    expect(error.message.startsWith(`${name}.yaml:${line}:${column}: `)).toBe(true);
    // A line of a terminal each, which says where.
    for (const { message } of problemsOf(error)) expect(message).toMatch(/^[^\n]{10,300}$/);
  });

  test("is in the table", () => {
    expect(readdirSync(folder).sort()).toEqual(
      Object.keys(expected)
        .map((name) => `${name}.yaml`)
        .sort(),
    );
  });
});
