// The decisions of the default path, pinned: whoever changes them on purpose says so in the CHANGELOG.
import "../../src/kernel/inlined.js";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createRegistry, parsePolicy, RouterPlugins } from "../../src/plugins.js";
import { Prompts } from "../../src/replay/prompts.js";
import { replayMode } from "../../src/replay/replay.js";
import { readTrace } from "../../src/replay/trace.js";

const path = fileURLToPath(new URL("../../../shared/traces/mooncake-conversation.jsonl", import.meta.url));
const present = existsSync(path);
const pinned = readFileSync(new URL("../golden/decisions.sha256", import.meta.url), "utf8").trim();

/** SHA-256 over `line worker overlap` of the first 1,000 requests, 8 workers, seed 1. */
async function decisions(plugins?: RouterPlugins): Promise<string> {
  const trace = await readTrace(readFileSync(path, "utf8").split("\n", 1000));
  const prompts = new Prompts(trace, 64);
  const setup = { trace, prompts, workers: 8, blocks: 16_384, seed: 1n, speed: 1 };
  const { lines } = await replayMode("kv", plugins ? { ...setup, plugins } : setup);
  const made = lines.map((text, i) => {
    const { decode_worker_idx: worker, routing_history: history } = JSON.parse(text);
    return `${i + 1} ${worker} ${history[0].selected_overlap_blocks}\n`;
  });
  expect(made).toHaveLength(1000);
  return createHash("sha256").update(made.join("")).digest("hex");
}

const resolved = async (yaml: string) => createRegistry().resolvePlugins(await parsePolicy(yaml));

test.skipIf(!present).each([
  ["no policy", undefined, true],
  [
    "queue profiles alone",
    "default_policy_family: f\nuncached_isl_buckets: [{min_tokens: 0, bucket: b}]\npolicy_classes: [{name: c, policy_family: f, cache_bucket: b, quantum: 1}]",
    true,
  ],
  ["aggregated: default", "worker_selection: {aggregated: default}", true],
  [
    "dynamo-default-cost-fn without parameters",
    "worker_selection: {aggregated: d, instances: [{name: d, type: dynamo-default-cost-fn}]}",
    false,
  ],
])(
  `the first 1,000 decisions of the conversation trace with %s${present ? "" : " (skipped: there is no ../shared/traces)"}`,
  async (_name, yaml, empty) => {
    const plugins = yaml === undefined ? new RouterPlugins() : await resolved(yaml);
    expect(plugins.isEmpty()).toBe(empty);
    expect(await decisions(plugins)).toBe(pinned);
  },
);

test.skipIf(!present)("another policy decides otherwise, so the sum can change", async () => {
  const other = "worker_selection: {aggregated: t, instances: [{name: t, type: dynamo-two-tier-cost-fn}]}";
  expect(await decisions(await resolved(other))).not.toBe(pinned);
});

test("the sum is one of SHA-256", () => {
  expect(pinned).toMatch(/^[0-9a-f]{64}$/);
});
