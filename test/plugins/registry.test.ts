import { describe, expect, test, vi } from "vitest";
import { WarmrouteError } from "../../src/core/errors.js";
import { RouterPlugins } from "../../src/plugins/bundle.js";
import { parsePolicy } from "../../src/plugins/policy/parse.js";
import {
  type Catalog,
  createRegistry,
  RouterPluginRegistry,
  WorkerSelectionPolicyRegistry,
} from "../../src/plugins/registry.js";
import { refusal } from "./refusal.js";

const selection = () => () => expect.fail("no pool is made here");
const classifier = () => () => ({});

/** The two kinds, which have the same rules. */
const kinds = [
  ["registerWorkerSelection", "workerSelection", selection],
  ["registerRequestClassifier", "requestClassifier", classifier],
] as const;

describe.each(kinds)("%s", (method, kind, provider) => {
  const register = (registry: RouterPluginRegistry, name: unknown, given: unknown = provider) =>
    (registry[method] as (name: unknown, provider: unknown) => void).call(registry, name, given);

  test.each([
    ["an empty name", "", "empty_name", {}],
    ["default", "default", "reserved_default", { name: "default" }],
    ["a name twice", "taken", "duplicate", { name: "taken" }],
    ["no name", undefined, "invalid_plugin", {}],
  ])("refuses %s, and stays as it was", async (_, name, code, details) => {
    const registry = new RouterPluginRegistry();
    register(registry, "taken");
    const before = registry.types();
    expect(await refusal(() => register(registry, name))).toMatchObject({ code, details });
    expect(registry.types()).toEqual(before);
  });

  test("a wrong name is said before a wrong provider", async () => {
    const registry = new RouterPluginRegistry();
    expect((await refusal(() => register(registry, "", null))).code).toBe("empty_name");
    expect((await refusal(() => register(registry, "default", null))).code).toBe("reserved_default");
  });

  test.each([[undefined], [null], [{}], ["provider"], [42]])("refuses %j as a provider", async (given) => {
    const registry = new RouterPluginRegistry();
    const error = await refusal(() => (registry[method] as (name: string, provider: unknown) => void)("a", given));
    expect(error).toMatchObject({ code: "invalid_plugin", details: { name: "a" } });
    expect(registry.isEmpty()).toBe(true);
  });

  test("names have a case, and may be what no policy file can name", () => {
    const registry = new RouterPluginRegistry();
    for (const name of ["gate", "Gate", "a b", "Default", "__proto__"]) register(registry, name);
    expect(registry.types()[kind]).toEqual(["Default", "Gate", "__proto__", "a b", "gate"]);
  });

  test("types are in the order of their bytes", () => {
    const registry = new RouterPluginRegistry();
    // By UTF-16 unit the last two would change places, by locale the first ones.
    for (const name of ["é", "\u{1F600}", "\uFF5E", "b", "Z", "a-1", "a", "a.1"]) register(registry, name);
    expect(registry.types()[kind]).toEqual(["Z", "a", "a-1", "a.1", "b", "é", "\uFF5E", "\u{1F600}"]);
  });

  test("one plugin is enough for a registry not to be empty", () => {
    const registry = new RouterPluginRegistry();
    expect(registry.isEmpty()).toBe(true);
    register(registry, "a");
    expect(registry.isEmpty()).toBe(false);
  });
});

test("one name may be used for both kinds", () => {
  const registry = new RouterPluginRegistry();
  registry.registerWorkerSelection("thunder", selection);
  registry.registerRequestClassifier("thunder", classifier);
  expect(registry.types()).toEqual({ workerSelection: ["thunder"], requestClassifier: ["thunder"] });
});

test("the old names are the new ones", () => {
  expect(WorkerSelectionPolicyRegistry).toBe(RouterPluginRegistry);
  const registry: WorkerSelectionPolicyRegistry = new WorkerSelectionPolicyRegistry();
  registry.register("old", selection);
  expect(registry.types()).toEqual({ workerSelection: ["old"], requestClassifier: [] });
});

describe("createRegistry", () => {
  test("ships exactly these types", () => {
    expect(createRegistry().types()).toEqual({
      workerSelection: ["dynamo-default-cost-fn", "dynamo-two-tier-cost-fn"],
      requestClassifier: [],
    });
  });

  test("takes modules and functions, in their order, after the types that ship", () => {
    const seen: string[][] = [];
    const registry = createRegistry(
      (registry) => {
        seen.push(registry.types().workerSelection);
        registry.registerWorkerSelection("a", selection);
      },
      {
        register(registry) {
          seen.push(registry.types().workerSelection);
          registry.registerRequestClassifier("a", classifier);
        },
      },
    );
    const shipped = ["dynamo-default-cost-fn", "dynamo-two-tier-cost-fn"];
    expect(seen).toEqual([shipped, ["a", ...shipped]]);
    expect(registry.types()).toEqual({ workerSelection: ["a", ...shipped], requestClassifier: ["a"] });
  });

  test("never lets a catalog replace a type", async () => {
    const catalog: Catalog = (registry) => registry.registerWorkerSelection("dynamo-two-tier-cost-fn", selection);
    expect(await refusal(() => createRegistry(catalog))).toMatchObject({
      code: "duplicate",
      details: { name: "dynamo-two-tier-cost-fn" },
    });
  });

  test.each([
    ["nothing", undefined, /catalog 2 has no register function/],
    ["null", null, /catalog 2 has no register function/],
    ["a module without register", { default: {} }, /catalog 2 has no register function/],
    ["a string", "acme", /catalog 2 has no register function/],
    [
      "a register that throws",
      () => {
        throw new Error("no licence");
      },
      /catalog 2 fails to register: no licence/,
    ],
    [
      "a register that throws a string",
      () => {
        throw "no licence";
      },
      /catalog 2 fails to register: no licence/,
    ],
    ["a register that comes later", async () => Promise.reject(new Error("late")), /must be done when it returns/],
  ])("refuses %s", async (_, catalog, message) => {
    const error = await refusal(() => createRegistry(() => {}, catalog as unknown as Catalog));
    expect(error).toMatchObject({ code: "invalid_plugin", path: "catalogs[1]" });
    expect(error.message).toMatch(message);
  });

  test("keeps what a catalog's register threw", async () => {
    const cause = new Error("no licence");
    const fails = () => {
      throw cause;
    };
    expect((await refusal(() => createRegistry(fails))).cause).toBe(cause);
    const own = new WarmrouteError("invalid_config", "acme needs a licence");
    const failsTyped = () => {
      throw own;
    };
    expect(await refusal(() => createRegistry(failsTyped))).toBe(own);
  });
});

describe("resolving", () => {
  const twoTier = { type: "dynamo-two-tier-cost-fn" };
  const file = async (lines: string) => await parsePolicy(lines, { file: "p.yaml" });

  test("the bundle of no file, of profiles alone and of defaults is empty", async () => {
    const registry = createRegistry();
    const profile = `default_policy_family: a
uncached_isl_buckets: [{ min_tokens: 0, bucket: b }]
policy_classes: [{ name: c, policy_family: a, cache_bucket: b, quantum: 1 }]
`;
    for (const policy of [undefined, await file(profile), await file("worker_selection: { aggregated: default }")]) {
      const plugins = registry.resolvePlugins(policy);
      expect(plugins).toBeInstanceOf(RouterPlugins);
      expect(plugins.isEmpty()).toBe(true);
      expect(plugins.hasCustomPlugins()).toBe(false);
      expect(plugins.customRoles.size).toBe(0);
    }
    const { profiles } = registry.resolvePlugins(await file(profile));
    expect(profiles?.profile?.policyClasses[0]?.name).toBe("c");
    expect(registry.resolvePlugins(await file("worker_selection: { aggregated: default }")).profiles).toBeUndefined();
  });

  test("a provider is called once for each instance that a role selects, and never for another", async () => {
    const registry = new RouterPluginRegistry();
    const calls: unknown[] = [];
    registry.registerWorkerSelection("t", (parameters) => {
      calls.push(parameters.raw);
      return selection();
    });
    const policy = await file(`worker_selection:
  encode: b
  aggregated: a
  prefill: a
  instances:
    - { name: b, type: t, parameters: { of: b } }
    - { name: a, type: t, parameters: { of: a } }
    - { name: c, type: t, parameters: { of: c } }
    - { name: d, type: unlinked }
`);
    const plugins = registry.resolvePlugins(policy);
    // In the order of the roles: aggregated, prefill, decode, encode.
    expect(calls).toEqual([{ of: "a" }, { of: "b" }]);
    expect(plugins.hasCustomWorkerSelection()).toBe(true);
    expect([...plugins.customRoles]).toEqual(["aggregated", "prefill", "encode"]);
    expect(plugins.requestClassifier).toBeUndefined();
  });

  test("each role runs its own factory, and the others the default one", async () => {
    const made: string[] = [];
    const factory = (name: string) => (init: { role: string }) => {
      made.push(`${name} for ${init.role}`);
      return {} as never;
    };
    const registry = new RouterPluginRegistry({ defaultSelection: factory("default") });
    registry.registerWorkerSelection("t", (parameters) => factory(String(parameters.raw.of)));
    const { workerSelection } = registry.resolvePlugins(
      await file(`worker_selection:
  prefill: a
  decode: b
  instances: [{ name: a, type: t, parameters: { of: a } }, { name: b, type: t, parameters: { of: b } }]
`),
    );
    for (const role of ["aggregated", "prefill", "decode", "encode"]) workerSelection?.({ role } as never);
    expect(made).toEqual(["default for aggregated", "a for prefill", "b for decode", "default for encode"]);
  });

  test("a registry without a default says so when a role needs it", async () => {
    const registry = new RouterPluginRegistry();
    registry.registerWorkerSelection("t", () => () => ({}) as never);
    const { workerSelection } = registry.resolvePlugins(
      await file("worker_selection: { decode: a, instances: [{ name: a, type: t }] }"),
    );
    expect(workerSelection?.({ role: "decode" } as never)).toEqual({});
    expect(await refusal(() => workerSelection?.({ role: "prefill" } as never))).toMatchObject({
      code: "missing_default",
      details: { role: "prefill" },
    });
  });

  test("for one role nothing of the others is looked at", async () => {
    const policy = await file(`worker_selection:
  aggregated: here
  prefill: elsewhere
  instances: [{ name: here, type: dynamo-two-tier-cost-fn }, { name: elsewhere, type: unlinked }]
`);
    const registry = createRegistry();
    expect((await refusal(() => registry.resolvePlugins(policy))).code).toBe("unknown_type");
    const plugins = registry.resolveForRole(policy, "aggregated");
    expect([...plugins.customRoles]).toEqual(["aggregated"]);
    expect(registry.resolveForRole(policy, "encode").isEmpty()).toBe(true);
    expect((await refusal(() => registry.resolveForRole(policy, "prefill"))).code).toBe("unknown_type");
  });

  test("a classifier's provider is called once, and its factory is the bundle's", async () => {
    const factory = () => ({});
    const provider = vi.fn(() => factory);
    const registry = createRegistry((registry) => registry.registerRequestClassifier("gate", provider));
    const plugins = registry.resolvePlugins(await file("request_classifier: { type: gate, parameters: { n: 1 } }"));
    expect(plugins.requestClassifier).toBe(factory);
    expect(plugins.isEmpty()).toBe(false);
    expect(plugins.hasCustomWorkerSelection()).toBe(false);
    expect(plugins.hasCustomPlugins()).toBe(true);
    expect(provider).toHaveBeenCalledOnce();
    // Nothing reaches a provider but the parameters of the file.
    expect(provider.mock.calls[0]).toEqual([{ raw: { n: 1 }, parse: expect.any(Function) }]);
  });

  test("an unknown type names those that are registered", async () => {
    const policy = await file(`request_classifier: { type: two-tier }
worker_selection: { decode: a, instances: [{ name: a, type: dynamo-two-teir-cost-fn }] }
`);
    expect(await refusal(() => createRegistry().resolvePlugins(policy))).toMatchObject({
      code: "unknown_type",
      path: "worker_selection.instances[0].type",
      line: 2,
      column: 61,
      message:
        "p.yaml:2:61: worker_selection.instances[0].type is no registered worker-selection policy: dynamo-two-teir-cost-fn; registered types: dynamo-default-cost-fn, dynamo-two-tier-cost-fn",
      details: {
        name: "dynamo-two-teir-cost-fn",
        available: ["dynamo-default-cost-fn", "dynamo-two-tier-cost-fn"],
        suggestion: "dynamo-two-tier-cost-fn",
      },
    });
    const classifierOnly = await file("request_classifier: { type: per-session-gate }");
    const error = await refusal(() => createRegistry().resolvePlugins(classifierOnly));
    expect(error).toMatchObject({ code: "unknown_type", details: { name: "per-session-gate", available: [] } });
    expect(error.message).toMatch(/registered types: <none>$/);
  });

  test("type default is a name like any other, and never registered", async () => {
    const policy = await file("worker_selection: { decode: a, instances: [{ name: a, type: default }] }");
    expect((await refusal(() => createRegistry().resolvePlugins(policy))).code).toBe("unknown_type");
  });

  test.each([
    ["an error", new Error("max_parallel must be positive"), /refuses its parameters: max_parallel must be positive$/],
    ["a string", "too many", /refuses its parameters: too many$/],
    ["nothing", undefined, /refuses its parameters: undefined$/],
    ["an error of ours", new WarmrouteError("invalid_config", "no"), /refuses its parameters: no$/],
  ])("a provider that throws %s", async (_, cause, message) => {
    const registry = createRegistry((registry) =>
      registry.registerRequestClassifier("gate", () => {
        throw cause;
      }),
    );
    const policy = await file("request_classifier:\n  type: gate\n  parameters: { max_parallel: -1 }\n");
    const error = await refusal(() => registry.resolvePlugins(policy));
    expect(error).toMatchObject({
      code: "provider",
      path: "request_classifier.parameters",
      line: 3,
      column: 3,
      details: { type: "gate", provider: "gate" },
    });
    expect(error.details.cause).toBe(cause);
    expect(error.cause).toBe(cause);
    expect(error.message).toMatch(message);
  });

  test.each([
    ["nothing", () => undefined],
    ["null", () => null],
    ["an object", () => ({})],
    ["a number", () => 42],
    ["a promise, and one that fails", () => Promise.reject(new Error("late"))],
  ])("a provider that returns %s instead of a factory", async (_, provider) => {
    const registry = createRegistry((registry) =>
      registry.registerRequestClassifier("gate", provider as unknown as () => () => object),
    );
    const policy = await file("request_classifier: { type: gate }");
    expect(await refusal(() => registry.resolvePlugins(policy))).toMatchObject({
      code: "invalid_plugin",
      path: "request_classifier.type",
      details: { type: "gate" },
    });
  });

  test("what parameters.parse refuses keeps its code and place", async () => {
    const policy = await file(`worker_selection:
  decode: spread
  instances:
    - name: spread
      ${Object.entries(twoTier).map(([key, value]) => `${key}: ${value}`)}
      parameters:
        cache_threshold: 1.5
        balance_abs_threshold: .inf
`);
    const error = await refusal(() => createRegistry().resolvePlugins(policy));
    expect(error).toMatchObject({
      code: "out_of_range",
      path: "worker_selection.instances[0].parameters.cache_threshold",
      line: 7,
      column: 26,
      details: { provider: "dynamo-two-tier-cost-fn" },
    });
    expect(error.details.errors).toHaveLength(2);
  });

  test("all faults are found together: roles in order, then the classifier, each once", async () => {
    const policy = await file(`request_classifier: { type: nobody }
worker_selection:
  aggregated: b
  prefill: b
  decode: a
  instances:
    - { name: a, type: dynamo-two-tier-cost-fn, parameters: { cache_threshold: 2 } }
    - { name: b, type: nowhere }
`);
    const { errors, roles, singles } = createRegistry().resolveAll(policy);
    expect(errors.map(({ code, path }) => [code, path])).toEqual([
      ["unknown_type", "worker_selection.instances[1].type"],
      ["out_of_range", "worker_selection.instances[0].parameters.cache_threshold"],
      ["unknown_type", "request_classifier.type"],
    ]);
    expect(roles).toEqual({ encode: { instance: "default", type: null, source: "built-in", parameters: {} } });
    expect(singles).toEqual({});
    expect(await refusal(() => createRegistry().resolvePlugins(policy))).toMatchObject({
      code: "unknown_type",
      path: "worker_selection.instances[1].type",
    });
  });
});
