// docs/policy-file.md against the code: its files are read, and it lists every key.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { errorCodes } from "../../src/core/errors.js";
import { parsePolicy } from "../../src/plugins/policy/parse.js";
import { policySchema } from "../../src/plugins/policy/schema.js";
import { problemsOf } from "../../src/plugins/problem.js";
import { refusal } from "../plugins/refusal.js";
import { blocksOf } from "./blocks.js";

const document = "docs/policy-file.md";
const text = readFileSync(new URL(`../../${document}`, import.meta.url), "utf8");
const blocks = blocksOf(document).filter(({ language }) => language === "yaml");
const isBroken = ({ words }: { words: readonly string[] }) => words.includes("file=broken.yaml");

describe("the files", () => {
  test.each(blocks.filter((block) => !isBroken(block)).map((block) => [block.line, block.text]))(
    "line %i",
    async (_, file) => {
      const policy = await parsePolicy(String(file));
      expect(policy.workerSelection ?? policy.requestClassifier ?? policy.models.size).toBeTruthy();
    },
  );

  test("the broken one has the errors that are shown", async () => {
    const [broken] = blocks.filter(isBroken);
    const error = await refusal(() => parsePolicy(broken!.text));
    for (const { code, line, column, message } of problemsOf(error)) {
      expect(text).toContain(`broken.yaml:${line}:${column}: ${code}: ${message}`);
    }
  });
});

/** Every key of a schema, at any depth. */
function keysOf(schema: unknown): string[] {
  const {
    innerType,
    in: input,
    shape = {},
    element,
    valueType,
  } = (schema as { _zod?: { def?: Record<string, unknown> } })._zod?.def ?? {};
  const inner = [innerType, input, element, valueType, ...Object.values(shape as object)].filter((one) => one);
  return [...Object.keys(shape as object), ...inner.flatMap(keysOf)];
}

test("every key has a row, and every row a key", () => {
  const keys = new Set(keysOf(policySchema));
  expect(keys.size).toBeGreaterThan(20);
  const rows = [...text.matchAll(/^\| `(\w+)` +\| (?!`--)/gm)].map((match) => match[1]!);
  expect(new Set(rows.filter((row) => row !== "prefill" && row !== "decode"))).toEqual(
    new Set([...keys].filter((key) => key !== "prefill" && key !== "decode")),
  );
  for (const role of ["prefill", "decode"]) expect(rows).toContain(role);
});

test("what it promises of a file's size holds", async () => {
  expect(text).toContain("at most 1 MiB, 150,000 symbols and 64 levels");
  const padded = (bytes: number) => `worker_selection: { aggregated: default } #${"x".repeat(bytes - 43)}`;
  expect((await parsePolicy(padded(1 << 20))).workerSelection?.roles).toEqual({ aggregated: "default" });
  expect((await refusal(() => parsePolicy(padded((1 << 20) + 1)))).code).toBe("out_of_range");
  const nested = (levels: number) =>
    `request_classifier: { type: a, parameters: { a: ${"[".repeat(levels)}${"]".repeat(levels)} } }`;
  // The root, the section and its parameters are three.
  expect((await parsePolicy(nested(61))).requestClassifier?.type).toBe("a");
  expect((await refusal(() => parsePolicy(nested(62)))).code).toBe("syntax");
});

test("the codes of a policy file are known", () => {
  // CONTRACT: check.
  for (const code of [
    "syntax unreadable duplicate_key unknown_key missing_key invalid_type out_of_range bad_identifier duplicate_name",
    "reserved_default unknown_type unknown_reference empty_section incomplete_profile not_increasing incomplete_matrix",
    "duplicate_cell name_clash unsupported_value provider",
    "empty_name duplicate unknown_instance missing_default",
  ].flatMap((line) => line.split(" "))) {
    expect(Object.keys(errorCodes)).toContain(code);
  }
});
