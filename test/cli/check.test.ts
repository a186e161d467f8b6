// `warmroute check` as a process: documents, exit codes, and what goes where.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { examples } from "../plugins/worked-examples.js";

const cli = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));
let directory: string;

const files: Record<string, string> = {
  "selection.yaml": examples.selection,
  "classifier.yaml": examples.classifier,
  "queues.yaml": examples.queues,
  "two-faults.yaml":
    "worker_selection:\n  prefill: hotcache\n  agregated: default\n  instances: [{ name: hot-cache, type: t }]\n",
  "type.yaml": "worker_selection:\n  decode: a\n  instances:\n    - { name: a, type: dynamo-two-tier-cost-function }\n",
  "parameters.yaml":
    "request_classifier: { type: nobody }\nworker_selection:\n  decode: a\n  instances:\n    - name: a\n      type: dynamo-two-tier-cost-fn\n      parameters: { cache_threshold: 2 }\n",
  "gate.mjs":
    'export function register(r) { r.registerRequestClassifier("per-session-gate", (p) => { if (p.raw.max_parallel < 1) throw new Error("max_parallel must be positive"); return () => ({}); }); }\n',
  "negative.yaml": "request_classifier: { type: per-session-gate, parameters: { max_parallel: -1 } }\n",
  "policy.mjs": 'export const register = (r) => r.registerWorkerSelection("acme-policy", () => () => ({}));\n',
  "again.mjs":
    'export const register = (r) => r.registerWorkerSelection("dynamo-two-tier-cost-fn", () => () => ({}));\n',
  "empty.mjs": "export const name = 1;\n",
  "broken.mjs": "export function register( {\n",
  "throws.mjs": 'throw new Error("no licence");\n',
  "odd-throw.mjs": "export const register = () => { throw Object.create(null); };\n",
  "odd-gate.mjs":
    'export const register = (r) => r.registerRequestClassifier("per-session-gate", () => new Proxy({}, { get() { throw 1; }, getPrototypeOf() { throw 1; } }));\n',
  "ticks.mjs": "setInterval(() => {}, 1000); export const register = () => {};\n",
  "lost.mjs": 'import "./not-there.mjs"; export const register = () => {};\n',
  "node_modules/acme-policies/package.json":
    '{"name":"acme-policies","type":"module","exports":{".":{"import":"./main.js"}}}',
  "node_modules/acme-policies/main.js":
    'export function register(r) { r.registerRequestClassifier("acme-gate", () => () => ({})); }\n',
};

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "warmroute-check-"));
  mkdirSync(join(directory, "node_modules/acme-policies"), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function check(args: readonly string[], env: Record<string, string> = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, "check", ...args], {
    cwd: directory,
    encoding: "utf8",
    timeout: 20_000,
    env: { PATH: process.env.PATH, ...env },
  });
  return { status, stdout, stderr };
}

/** The document that `--json` prints, with nothing else printed anywhere. */
function document(args: readonly string[], env: Record<string, string> = {}) {
  const { status, stdout, stderr } = check([...args, "--json"], env);
  expect(stderr).toBe("");
  expect(stdout).toMatch(/^\{.*\}\n$/);
  const parsed = JSON.parse(stdout);
  expect(status).toBe(parsed.ok ? 0 : 1);
  return parsed;
}

const builtIn = { instance: "default", type: null, source: "built-in", parameters: {} };
const twoTier = (instance: string, source: string, parameters: object) => ({
  instance,
  type: "dynamo-two-tier-cost-fn",
  source,
  parameters,
});
const hotCache = (source: string) => twoTier("hot-cache", source, { cache_threshold: 0.25 });
const spread = (source: string) => twoTier("spread", source, { cache_threshold: 1, balance_abs_threshold: 4 });

describe("what resolves", () => {
  test("each role with its instance, type, source and parameters", () => {
    expect(document(["--policy", "selection.yaml"])).toEqual({
      ok: true,
      roles: {
        aggregated: { ...builtIn, source: "file" },
        prefill: hotCache("file"),
        decode: spread("file"),
        encode: builtIn,
      },
      request_classifier: null,
    });
  });

  test("options and variables over the file", () => {
    const env = { WARMROUTE_ROUTER_WORKER_SELECTION_POLICY: "default", DYN_ROUTER_DECODE_POLICY: "hot-cache" };
    const { roles } = document(["--policy", "selection.yaml", "--prefill-policy", "spread"], env);
    expect(roles).toEqual({
      aggregated: { ...builtIn, source: "env" },
      prefill: spread("option"),
      decode: hotCache("env"),
      encode: { ...builtIn, source: "env" },
    });
  });

  test.each(["WARMROUTE_ROUTER_POLICY_CONFIG", "DYN_ROUTER_POLICY_CONFIG"])("the path from %s", (variable) => {
    expect(document([], { [variable]: "selection.yaml" }).roles.decode).toEqual(spread("file"));
    // The option says it louder.
    expect(document(["--policy", "queues.yaml"], { [variable]: "selection.yaml" }).roles.decode).toEqual(builtIn);
  });

  test("a classifier of a catalog", () => {
    const { request_classifier } = document(["--policy", "classifier.yaml", "--catalog", "gate.mjs"]);
    expect(request_classifier).toEqual({ type: "per-session-gate", parameters: { max_parallel: 1 } });
  });

  test("queues alone", () => {
    const roles = { aggregated: builtIn, prefill: builtIn, decode: builtIn, encode: builtIn };
    expect(document(["--policy", "queues.yaml"])).toEqual({ ok: true, roles, request_classifier: null });
  });

  test("to people, a line for each role", () => {
    expect(check(["--policy", "selection.yaml"])).toEqual({
      status: 0,
      stderr: "",
      stdout: `selection.yaml is valid
  aggregated          default                              from worker_selection.aggregated
  prefill             hot-cache (dynamo-two-tier-cost-fn)  from worker_selection.prefill     {"cache_threshold":0.25}
  decode              spread (dynamo-two-tier-cost-fn)     from worker_selection.decode      {"cache_threshold":1,"balance_abs_threshold":4}
  encode              default                              nothing else is chosen
  request classifier  <none>
  queues: one class, default, for every model
`,
    });
    const { stdout } = check(["--policy", "queues.yaml"]);
    expect(stdout).toContain("  queues: 1 class for org/big-model, 3 classes for every other model\n");
  });
});

describe("the registered types", () => {
  test("that ship", () => {
    expect(check(["--types"])).toEqual({
      status: 0,
      stderr: "",
      stdout: "worker_selection: dynamo-default-cost-fn, dynamo-two-tier-cost-fn\nrequest_classifier: <none>\n",
    });
  });

  test("of catalogs: a file, a package, several of them", () => {
    const catalogs = ["--catalog", "./policy.mjs", "acme-policies", "--catalog", "gate.mjs"];
    expect(document(["--types", ...catalogs]).types).toEqual({
      worker_selection: ["acme-policy", "dynamo-default-cost-fn", "dynamo-two-tier-cost-fn"],
      request_classifier: ["acme-gate", "per-session-gate"],
    });
    expect(check(["--types", "--catalog", "acme-policies"]).stdout).toContain("request_classifier: acme-gate\n");
  });

  test("beside a file", () => {
    const { ok, types, roles } = document(["--types", "--policy", "selection.yaml"]);
    expect({ ok, types, decode: roles.decode }).toEqual({
      ok: true,
      types: { worker_selection: ["dynamo-default-cost-fn", "dynamo-two-tier-cost-fn"], request_classifier: [] },
      decode: spread("file"),
    });
  });
});

describe("what is wrong", () => {
  test("all of it, by line and column", () => {
    expect(document(["--policy", "two-faults.yaml"])).toEqual({
      ok: false,
      errors: [
        {
          code: "unknown_reference",
          path: "worker_selection.prefill",
          line: 2,
          column: 12,
          message: 'worker_selection.prefill names no instance: "hotcache"; instances: hot-cache',
          suggestion: "hot-cache",
        },
        {
          code: "unknown_key",
          path: "worker_selection.agregated",
          line: 3,
          column: 3,
          message: "worker_selection.agregated is not a known key",
          suggestion: "aggregated",
        },
      ],
    });
    expect(check(["--policy", "two-faults.yaml"])).toEqual({
      status: 1,
      stdout: "",
      stderr: `two-faults.yaml:2:12: unknown_reference: worker_selection.prefill names no instance: "hotcache"; instances: hot-cache; did you mean hot-cache?
two-faults.yaml:3:3: unknown_key: worker_selection.agregated is not a known key; did you mean aggregated?
`,
    });
  });

  const errorsOf = (args: readonly string[], env: Record<string, string> = {}) =>
    document(args, env).errors.map(({ message: _, ...rest }: { message: string }) => rest);

  test("a type that no catalog has", () => {
    const path = "worker_selection.instances[0].type";
    const suggestion = "dynamo-two-tier-cost-fn";
    expect(errorsOf(["--policy", "type.yaml"])).toEqual([
      { code: "unknown_type", path, line: 4, column: 24, suggestion },
    ]);
    expect(check(["--policy", "type.yaml"]).stderr).toBe(
      `type.yaml:4:24: unknown_type: ${path} is no registered worker-selection policy: dynamo-two-tier-cost-function; registered types: dynamo-default-cost-fn, dynamo-two-tier-cost-fn; did you mean dynamo-two-tier-cost-fn?\n`,
    );
  });

  test("parameters that a provider refuses, and all else that does not resolve", () => {
    expect(errorsOf(["--policy", "parameters.yaml"])).toEqual([
      { code: "unknown_type", path: "request_classifier.type", line: 1, column: 29 },
      {
        code: "out_of_range",
        path: "worker_selection.instances[0].parameters.cache_threshold",
        line: 7,
        column: 38,
        provider: "dynamo-two-tier-cost-fn",
      },
    ]);
    expect(errorsOf(["--policy", "negative.yaml", "--catalog", "gate.mjs"])).toEqual([
      {
        code: "provider",
        path: "request_classifier.parameters",
        line: 1,
        column: 47,
        provider: "per-session-gate",
      },
    ]);
  });

  test("overrides that name no instance, which stand in no line", () => {
    const place = { line: null, column: null };
    const env = { DYN_ROUTER_WORKER_SELECTION_POLICY: "nope" };
    expect(errorsOf(["--policy", "selection.yaml", "--decode-policy", "spred"], env)).toEqual([
      { code: "unknown_instance", path: "DYN_ROUTER_WORKER_SELECTION_POLICY", ...place },
      { code: "unknown_instance", path: "--decode-policy", ...place, suggestion: "spread" },
    ]);
    expect(check(["--policy", "selection.yaml", "--decode-policy", "spred"]).stderr).toBe(
      'error: unknown_instance: --decode-policy names no instance of worker_selection: "spred"; instances: hot-cache, spread; did you mean spread?\n',
    );
  });

  test.each([
    ["there is no file", ["--policy", "nowhere.yaml"], "nowhere.yaml", /ENOENT/],
    ["it is a directory", ["--policy", "node_modules"], "node_modules", /EISDIR/],
  ])("%s", (_, args, path, message) => {
    const { errors } = document(args);
    expect(errors).toMatchObject([{ code: "unreadable", path, line: null, column: null }]);
    expect(errors[0].message).toMatch(message);
    expect(check(args).stderr).toMatch(/^error: unreadable: cannot read the policy file .*\n$/);
  });

  test("a file without end is cut at the limit", () => {
    expect(document(["--policy", "/dev/zero"]).errors).toMatchObject([{ code: "out_of_range", path: "" }]);
  });

  test.each([
    ["no file", "nowhere.mjs", "unreadable", /there is no such file or package/],
    ["no file at a path", "./nowhere.mjs", "unreadable", /there is no file/],
    ["no package", "acme-nothing", "unreadable", /there is no such file or package/],
    ["nothing", "", "unreadable", /cannot load the catalog/],
    ["no register", "empty.mjs", "invalid_plugin", /^the catalog empty\.mjs exports no register function$/],
    ["no JavaScript", "broken.mjs", "invalid_plugin", /fails to load: Unexpected/],
    ["a module that throws", "throws.mjs", "invalid_plugin", /^the catalog throws\.mjs fails to load: no licence$/],
    ["an import that is lost", "lost.mjs", "invalid_plugin", /fails to load: Cannot find module/],
    [
      "one that throws what cannot be shown",
      "odd-throw.mjs",
      "invalid_plugin",
      /^catalog 1 fails to register: an object$/,
    ],
    ["a type that ships", "again.mjs", "duplicate", /dynamo-two-tier-cost-fn is registered already/],
  ])("a catalog that is %s", (_, catalog, code, message) => {
    const { errors } = document(["--policy", "selection.yaml", "--catalog", catalog]);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject({ code, line: null, column: null });
    expect(errors[0].message).toMatch(message);
    const { status, stdout, stderr } = check(["--policy", "selection.yaml", "--catalog", catalog]);
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toMatch(/^error: [^\n]*\n$/);
    expect(stderr).not.toMatch(/\bat .*:\d+:\d+/);
  });

  test("a provider that returns what cannot be looked at", () => {
    const { errors } = document(["--policy", "negative.yaml", "--catalog", "odd-gate.mjs"]);
    expect(errors).toEqual([expect.objectContaining({ code: "invalid_plugin", line: 1 })]);
  });

  test("a catalog whose timers run on holds up nothing", () => {
    const { status, stdout } = check(["--policy", "selection.yaml", "--catalog", "ticks.mjs", "--json"]);
    expect([status, JSON.parse(stdout).ok]).toEqual([0, true]);
  });

  test("a broken file and a broken catalog together", () => {
    const { errors } = document(["--policy", "two-faults.yaml", "--catalog", "empty.mjs"]);
    expect(errors.map(({ code }: { code: string }) => code)).toEqual([
      "invalid_plugin",
      "unknown_reference",
      "unknown_key",
    ]);
  });
});

describe("wrong usage", () => {
  test.each([
    [["--json"], "--policy", "--policy is missing"],
    [["--policy", "", "--json"], "--policy", "--policy is empty"],
    [["--json", "--policy"], "--policy", "option '--policy <file>' argument missing"],
    [["--polciy", "selection.yaml", "--json"], "--polciy", "unknown option '--polciy'"],
    [["selection.yaml", "--json"], undefined, /too many arguments/],
  ])("%j", (args, path, message) => {
    const { status, stdout, stderr } = check(args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    const { error } = JSON.parse(stderr);
    expect(error.code).toBe("invalid_usage");
    expect(error.path).toBe(path);
    expect(error.message).toMatch(message);
  });
});
