// The catalogs of examples/plugins, used as their READMEs say: the YAML of each README is the policy file here.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import {
  type Catalog,
  createRegistry,
  createRouter,
  hashTokens,
  type KvRouter,
  parsePolicy,
  type RouterOptions,
  type RouterPlugins,
  type Selection,
  type SelectRequest,
  type WorkerSelectionInit,
} from "warmroute";
import { testRequestClassifier, testWorkerSelectionPolicy } from "warmroute/testing";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folderOf = (name: string) => join(root, "examples/plugins", name);
const readme = (name: string) => readFileSync(join(folderOf(name), "README.md"), "utf8");
const yamlOf = (name: string) => /```yaml\n(.*?)```/s.exec(readme(name))![1]!;

async function pluginsOf(name: string): Promise<RouterPlugins> {
  const catalog = (await import(join(folderOf(name), "index.js"))) as Catalog;
  return createRegistry(catalog).resolvePlugins(await parsePolicy(yamlOf(name)));
}

const policies = ["error-rate", "session-affinity"];
const classifiers = ["deadline", "session-gate", "tenant-class"];
const names = [...policies, ...classifiers].sort();

test("every example is tested here", () => {
  expect(readdirSync(join(root, "examples/plugins")).sort()).toEqual(names);
});

describe.each(names)("%s", (name) => {
  const folder = mkdtempSync(join(tmpdir(), "warmroute-example-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test("is at most 60 lines", () => {
    expect(readFileSync(join(folderOf(name), "index.js"), "utf8").split("\n").length).toBeLessThanOrEqual(61);
  });

  test("has a README with type, purpose, inputs, parameters and trade-offs", () => {
    const text = readme(name);
    expect(text).toMatch(new RegExp(`^# example-${name}\n`));
    for (const part of ["**What it does.**", "**Inputs.**", "| parameter", "**Trade-offs.**"]) {
      expect(text).toContain(part);
    }
  });

  const check = (yaml: string) => {
    const file = join(folder, "policy.yaml");
    writeFileSync(file, yaml);
    const catalog = join(folderOf(name), "index.js");
    const args = ["dist/cli.js", "check", "--policy", file, "--catalog", catalog, "--json"];
    const { stdout } = spawnSync(process.execPath, args, {
      cwd: root,
      encoding: "utf8",
      env: { PATH: process.env.PATH },
    });
    return JSON.parse(stdout);
  };

  test("resolves as its README says", () => {
    const { ok, roles, request_classifier } = check(yamlOf(name));
    expect(ok).toBe(true);
    const { type } = policies.includes(name) ? roles.aggregated : request_classifier;
    expect(type).toBe(`example-${name}`);
  });

  test("names a parameter that is misspelt", () => {
    const yaml = yamlOf(name)
      .replace("parameters: {", "parameters: { misspelt: 1,")
      .replace("parameters:\n    ", "parameters:\n    misspelt: 1\n    ");
    const { ok, errors } = check(yaml);
    expect(ok).toBe(false);
    expect(errors).toMatchObject([{ code: "unknown_key", provider: `example-${name}` }]);
    expect(errors[0].path).toMatch(/parameters\.misspelt$/);
  });
});

// ---- conformance

const init = { role: "aggregated", partition: { model: "m", routingGroup: "default" } } as WorkerSelectionInit;
for (const name of policies) {
  const { workerSelection } = await pluginsOf(name);
  testWorkerSelectionPolicy(name, () => workerSelection!(init));
}
for (const name of classifiers) {
  const { requestClassifier } = await pluginsOf(name);
  testRequestClassifier(name, requestClassifier!);
}

// ---- what each does

const SIZE = 16;
const prompt = (seed: number, blocks: number) => Uint32Array.from({ length: blocks * SIZE }, (_, i) => seed * 1000 + i);

async function routerOf(name: string, workers: number, options: RouterOptions = {}): Promise<KvRouter> {
  return createRouter({
    blockSize: SIZE,
    seed: 1n,
    plugins: await pluginsOf(name),
    workers: Array.from({ length: workers }, (_, i) => ({ workerId: i + 1 })),
    ...options,
  });
}

let requests = 0;
const select = (router: KvRouter, parts: Partial<SelectRequest> = {}, options = {}): Promise<Selection> =>
  router.select({ requestId: `request-${++requests}`, tokens: prompt(1, 4), ...parts }, options);

/** Puts requests in flight on a rank, each with these prefill tokens. */
function load(router: KvRouter, workerId: string, n: number, islTokens = 0): void {
  for (let i = 0; i < n; i++) {
    router.reserve({ requestId: `load-${++requests}`, worker: { workerId }, sequenceHashes: [], islTokens });
  }
}

/** Tells a router that a worker holds the leading blocks of a prompt, as its engine would. */
function holds(router: KvRouter, workerId: string, tokens: Uint32Array, blocks: number): void {
  const { blockHashes, sequenceHashes } = hashTokens(tokens, SIZE);
  router.storeBlocks(
    { workerId, dpRank: 0 },
    "device",
    null,
    sequenceHashes.slice(0, blocks),
    blockHashes.slice(0, blocks),
  );
}

describe("session-affinity", () => {
  test("keeps a session at home until that is more than 4 requests busier than the idlest rank", async () => {
    const router = await routerOf("session-affinity", 3);
    const served = [];
    for (let i = 0; i < 7; i++) served.push((await select(router, { sessionId: "s" })).worker.workerId);
    const [home, , , , , other] = served;
    // At home 0, 1, 2, 3, 4 requests are in flight; with 5 the session moves, and stays where it went.
    expect(served).toEqual([home, home, home, home, home, other, other]);
    expect(other).not.toBe(home);
  });

  test("without a session the rank with the least to do for the prompt", async () => {
    const router = await routerOf("session-affinity", 2);
    holds(router, "2", prompt(1, 4), 3);
    load(router, "2", 2);
    // 4 blocks and no request against 1 block and 2 requests.
    expect(router.bestWorker({ tokens: prompt(1, 4) }).workerId).toBe("2");
    load(router, "2", 2);
    expect(router.bestWorker({ tokens: prompt(1, 4) }).workerId).toBe("1");
  });

  test("forgets a home whose rank is gone, also when another one gets its slot", async () => {
    const router = await routerOf("session-affinity", 2);
    const { worker, booking } = await select(router, { sessionId: "s" });
    booking.complete();
    router.removeWorker(worker.workerId);
    router.addWorker({ workerId: 9 });
    load(router, "9", 1);
    const left = worker.workerId === "1" ? "2" : "1";
    expect((await select(router, { sessionId: "s" })).worker.workerId).toBe(left);
  });
});

describe("error-rate", () => {
  test("counts blocks, and no errors while nothing is known of them", async () => {
    const router = await routerOf("error-rate", 2);
    holds(router, "1", prompt(1, 4), 3);
    load(router, "1", 1, 5 * SIZE);
    const { candidates } = router.probe({ tokens: prompt(1, 4) });
    // Each decodes the 4 blocks of this prompt; worker 1 computes 1 of them after 5 others.
    expect(candidates.map(({ terms }) => terms)).toEqual([
      { scorer_0: 1 + 5 + 4, scorer_1: 0 },
      { scorer_0: 4 + 0 + 4, scorer_1: 0 },
    ]);
  });

  test("a rank that fails costs 200 blocks times its share of failures, from 20 samples on", async () => {
    const { workerSelection } = await pluginsOf("error-rate");
    const scorer = workerSelection!(init).scorers[1]!;
    const latency = {
      errorRate: Float64Array.of(0.5, 1, Number.NaN, 0),
      samples: Float64Array.of(20, 19, Number.NaN, 1000),
    };
    const costs = new Float64Array(4).fill(Number.NaN);
    scorer.score({} as never, { length: 4, latency } as never, costs);
    expect([...costs]).toEqual([100, 0, 0, 0]);
  });
});

const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

describe("session-gate", () => {
  /** Starts a request of each session; tells which are through, by their place. */
  function starts(router: KvRouter, sessions: (string | undefined)[], signal?: AbortSignal) {
    const through: number[] = [];
    const selections = sessions.map((sessionId, i) => {
      const selection = select(router, sessionId === undefined ? {} : { sessionId }, signal ? { signal } : {});
      selection.then(
        () => through.push(i),
        () => {},
      );
      return selection;
    });
    return { through, selections };
  }

  test("lets two of a session run, the others as these end, in the order they came", async () => {
    const router = await routerOf("session-gate", 2);
    const { through, selections } = starts(router, ["s", "s", "s", "s", "other", undefined]);
    await settled();
    expect(through.sort()).toEqual([0, 1, 4, 5]);
    (await selections[0]!).booking.complete();
    await settled();
    expect(through.slice(4)).toEqual([2]);
    (await selections[2]!).booking.abort(new Error("the worker failed"));
    await settled();
    expect(through.slice(4)).toEqual([2, 3]);
  });

  test("passes over those that gave up", async () => {
    const router = await routerOf("session-gate", 2);
    const running = starts(router, ["s", "s"]);
    const controller = new AbortController();
    const [impatient] = starts(router, ["s"], controller.signal).selections;
    const patient = starts(router, ["s"]);
    await settled();
    controller.abort();
    await expect(impatient).rejects.toThrow(/abort/);
    (await running.selections[1]!).booking.complete();
    await settled();
    expect(patient.through).toEqual([0]);
  });
});

describe("deadline", () => {
  /** A router whose clock has gone on this much once it was read for the request, at its ingress. */
  const slow = async (ms: number) => {
    let reads = 0;
    const router = await routerOf("deadline", 1, { clock: { now: () => (reads++ === 0 ? 0 : ms) } });
    reads = 0;
    return router;
  };

  test.each([
    // 5 s, and 0.1 ms for each token.
    [5000, 1, "in time"],
    [5001, 1, "deadline_exceeded"],
    [6000, 10_000, "deadline_exceeded"],
    [6000, 10_001, "in time"],
  ])("after %d ms with %d tokens: %s", async (ms, n, expected) => {
    const router = await slow(ms);
    const tokens = new Uint32Array(n).fill(7);
    const outcome = select(router, { tokens }).then(
      () => "in time",
      (error) => error.code,
    );
    expect(await outcome).toBe(expected);
  });
});

describe("tenant-class", () => {
  const options: RouterOptions = { attributes: ({ headers }) => ({ tenant: headers.get("x-tenant") ?? undefined }) };
  const classOf = async (headers: Record<string, string>, parts: Partial<SelectRequest> = {}) => {
    const router = await routerOf("tenant-class", 1, options);
    return (await select(router, parts, { headers })).policyClass;
  };

  test.each([
    ["a listed tenant gets its class", { "x-tenant": "acme" }, {}, "gold"],
    ["whatever it asks for", { "x-tenant": "acme" }, { policyClass: "regular" }, "gold"],
    ["another tenant does not", { "x-tenant": "umbrella" }, {}, "regular_all"],
    ["also when it asks", { "x-tenant": "umbrella" }, { policyClass: "gold" }, "regular_all"],
    ["nor does nobody", {}, { policyClass: "gold" }, "regular_all"],
  ])("%s", async (_, headers, parts, expected) => {
    expect(await classOf(headers, parts)).toBe(expected);
  });
});
