// Which policy each role runs: options, then variables, then the file (spec: plugins.md §2.3).
import { describe, expect, test } from "vitest";
import type { ResolveOptions } from "../../src/plugins/overrides.js";
import { parsePolicy } from "../../src/plugins/policy/parse.js";
import { createRegistry } from "../../src/plugins/registry.js";
import { refusal } from "./refusal.js";
import { examples } from "./worked-examples.js";

const registry = createRegistry();
const ALL = "WARMROUTE_ROUTER_WORKER_SELECTION_POLICY";
const PREFILL = "WARMROUTE_ROUTER_PREFILL_POLICY";
const DECODE = "WARMROUTE_ROUTER_DECODE_POLICY";

/** `instance@source` of aggregated, prefill, decode and encode. */
async function chosen(options: ResolveOptions, text: string = examples.selection): Promise<string[]> {
  const { roles, errors } = registry.resolveAll(await parsePolicy(text), options);
  expect(errors).toEqual([]);
  return ["aggregated", "prefill", "decode", "encode"].map((role) => {
    const { instance, source } = roles[role as keyof typeof roles]!;
    return `${instance}@${source}`;
  });
}

const file = ["default@file", "hot-cache@file", "spread@file", "default@built-in"];
const everywhere = (choice: string) => Array(4).fill(choice);

test.each<[string, ResolveOptions, string[]]>([
  ["nothing beside the file", {}, file],
  ["a variable for all", { env: { [ALL]: "spread" } }, everywhere("spread@env")],
  ["default in it", { env: { [ALL]: "default" } }, everywhere("default@env")],
  [
    "an option over it",
    { env: { [ALL]: "default" }, prefillPolicy: "hot-cache", decodePolicy: "spread" },
    ["default@env", "hot-cache@option", "spread@option", "default@env"],
  ],
  [
    "a variable of the role over it",
    { env: { [ALL]: "spread", [PREFILL]: "hot-cache", [DECODE]: "default" } },
    ["spread@env", "hot-cache@env", "default@env", "spread@env"],
  ],
  [
    "an option over both",
    { env: { [ALL]: "spread", [PREFILL]: "spread" }, prefillPolicy: "default" },
    ["spread@env", "default@option", "spread@env", "spread@env"],
  ],
  [
    "the reference's names",
    { env: { DYN_ROUTER_WORKER_SELECTION_POLICY: "hot-cache", DYN_ROUTER_DECODE_POLICY: "spread" } },
    ["hot-cache@env", "hot-cache@env", "spread@env", "hot-cache@env"],
  ],
  [
    "our names over the reference's",
    {
      env: {
        DYN_ROUTER_WORKER_SELECTION_POLICY: "nope",
        [ALL]: "spread",
        DYN_ROUTER_PREFILL_POLICY: "nope",
        [PREFILL]: "default",
      },
    },
    ["spread@env", "default@env", "spread@env", "spread@env"],
  ],
  [
    "white space around a name",
    { env: { [ALL]: "  spread\n" }, decodePolicy: "\thot-cache " },
    ["spread@env", "spread@env", "hot-cache@option", "spread@env"],
  ],
  [
    "empty means unset, everywhere",
    {
      env: { [ALL]: "", [PREFILL]: "  ", DYN_ROUTER_DECODE_POLICY: "", DYN_ROUTER_PREFILL_POLICY: "spread" },
      decodePolicy: " ",
    },
    ["default@file", "spread@env", "spread@file", "default@built-in"],
  ],
  ["other variables", { env: { ROUTER_PREFILL_POLICY: "nope", PREFILL_POLICY: "nope" } }, file],
])("%s", async (_, options, expected) => {
  expect(await chosen(options)).toEqual(expected);
});

test("the process's own environment is never read", async () => {
  process.env[ALL] = "nope";
  try {
    expect(await chosen({})).toEqual(file);
  } finally {
    delete process.env[ALL];
  }
});

test("a choice for all roles is none for a certain one, but runs", async () => {
  const policy = await parsePolicy(examples.selection);
  const plugins = registry.resolvePlugins(policy, { env: { [ALL]: "spread" }, decodePolicy: "hot-cache" });
  expect(plugins.workerSelection).toBeDefined();
  expect([...plugins.customRoles]).toEqual(["decode"]);
  expect(registry.resolvePlugins(policy, { env: { [ALL]: "default" } }).isEmpty()).toBe(true);
});

describe("an override that names no instance", () => {
  test.each<[string, ResolveOptions, string]>([
    ["for all roles", { env: { [ALL]: "nope" } }, ALL],
    ["under the reference's name", { env: { DYN_ROUTER_DECODE_POLICY: "nope" } }, "DYN_ROUTER_DECODE_POLICY"],
    ["as an option", { prefillPolicy: "nope" }, "--prefill-policy"],
    ["as the other", { decodePolicy: "nope" }, "--decode-policy"],
  ])("%s", async (_, options, path) => {
    const policy = await parsePolicy(examples.selection, { file: "p.yaml" });
    const error = await refusal(() => registry.resolvePlugins(policy, options));
    expect(error).toMatchObject({
      code: "unknown_instance",
      path,
      message: `${path} names no instance of worker_selection: "nope"; instances: hot-cache, spread`,
      details: { name: "nope", available: ["hot-cache", "spread"] },
    });
    expect(error.line).toBeUndefined();
    // Once, however many roles it is meant for.
    expect(registry.resolveAll(policy, options).errors).toHaveLength(1);
  });

  test("is told what was meant", async () => {
    const policy = await parsePolicy(examples.selection);
    const error = await refusal(() => registry.resolvePlugins(policy, { prefillPolicy: "hotcache" }));
    expect(error.details.suggestion).toBe("hot-cache");
    const other = await refusal(() => registry.resolvePlugins(policy, { prefillPolicy: "defualt" }));
    expect(other.details.suggestion).toBe("default");
  });

  test("without a file there is none to name", async () => {
    const error = await refusal(() => registry.resolvePlugins(undefined, { env: { [ALL]: "spread" } }));
    expect(error).toMatchObject({ code: "unknown_instance", details: { available: [] } });
    expect(error.message).toMatch(/instances: <none>$/);
    expect(registry.resolvePlugins(undefined, { env: { [ALL]: "default" } }).isEmpty()).toBe(true);
  });
});

test.each([
  ["bytes that are no text", "hot\uFFFDcache"],
  ["half a character", "hot\uD83Dcache"],
])("%s are unreadable", async (_, value) => {
  const policy = await parsePolicy(examples.selection);
  const error = await refusal(() => registry.resolvePlugins(policy, { env: { [ALL]: value } }));
  expect(error).toMatchObject({ code: "unreadable", path: ALL });
  // A whole character beyond U+FFFF is text, if no instance.
  const whole = await refusal(() => registry.resolvePlugins(policy, { env: { [ALL]: "\u{1F600}" } }));
  expect(whole.code).toBe("unknown_instance");
});

test("what is no string is refused", async () => {
  const options = { prefillPolicy: 3 } as unknown as ResolveOptions;
  const policy = await parsePolicy(examples.selection);
  expect((await refusal(() => registry.resolvePlugins(policy, options))).code).toBe("invalid_type");
});
