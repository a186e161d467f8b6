// One construction for every entry point (spec: plugins.md §1.7, §1.8).
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import "../../src/kernel/inlined.js";
import { HttpFrontend } from "../../src/frontend/index.js";
import { createRegistry, parsePolicy, RouterPlugins, WorkerSelectionPolicy } from "../../src/plugins.js";
import { createRouter } from "../../src/router/create-router.js";
import { classifies, Diary, selects, settled } from "./plugin-bundle.js";

const tokens = Uint32Array.from({ length: 100 }, (_, i) => i);
const worker = (workerId: string, more = {}) => ({ workerId, url: `http://w${workerId}`, ...more });
const coded = (code: string, path?: string) =>
  expect.objectContaining({ code, ...(path === undefined ? {} : { path }) });

/** A frontend of two models over a fetch that answers at once. */
function frontendOf(plugins: RouterPlugins) {
  return new HttpFrontend({
    models: [
      { model: "a", workers: [worker("1"), worker("2")] },
      { model: "b", workers: [worker("7", { dpSize: 2, totalKvBlocks: 50 })] },
    ],
    fetch: async () => new Response("{}"),
  }).plugins(plugins);
}

const ask = (frontend: HttpFrontend, model: string, id: string) =>
  frontend.fetch(
    new Request("http://router/v1/completions", {
      method: "POST",
      headers: { "content-type": "application/json", "x-request-id": id },
      body: JSON.stringify({ model, prompt: "one two three" }),
    }),
  );

test("nothing but createRouter makes a router, and nothing but its pools makes a policy", () => {
  const root = fileURLToPath(new URL("../../src", import.meta.url));
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const using = (pattern: RegExp) =>
    files.filter((name) => pattern.test(readFileSync(join(root, name), "utf8"))).sort();
  expect(using(/new KvRouter\(/)).toEqual(["router/create-router.ts"]);
  // `explain` decides from written-down columns, without a router.
  expect(using(/(?<!function )createPool\(\{/)).toEqual(["cli/scenario.ts", "router/pools.ts"]);
  expect(using(/new ClassifierRunner\(/)).toEqual(["router/hooks.ts"]);
  expect(using(/new SelectionCore\(/)).toEqual(["scheduling/policy-factory.ts"]);
});

describe("two models from one bundle", () => {
  test("share the providers' calls and nothing else", async () => {
    const diary = new Diary();
    const frontend = frontendOf(await diary.bundle(`${selects("aggregated")}\n${classifies}`));
    expect(diary.providers).toEqual(["noted", "classifier"]);
    expect(diary.factories).toEqual([]);
    await frontend.start();
    // Before the first request: a policy for each pool, a classifier for each model.
    expect(diary.factories).toEqual(["a/default/aggregated", "classifier", "b/default/aggregated", "classifier"]);
    await (await ask(frontend, "a", "r1")).text();
    await (await ask(frontend, "b", "r2")).text();
    expect(diary.factories).toHaveLength(4);
    expect(diary.providers).toHaveLength(2);
    await frontend.close();
    expect(diary.closed.sort()).toEqual([
      "a/default/aggregated",
      "b/default/aggregated",
      "classifier 0",
      "classifier 1",
    ]);
  });

  test("a gate of one never delays the other", async () => {
    const diary = new Diary();
    const frontend = frontendOf(await diary.bundle(classifies));
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    diary.classify = async (request, number) => {
      if (number === 0) await gate;
      return request;
    };
    let answered = false;
    const held = ask(frontend, "a", "r1").then((answer) => {
      answered = true;
      return answer.text();
    });
    expect((await ask(frontend, "b", "r1")).status).toBe(200);
    expect(answered).toBe(false);
    open();
    await held;
    await frontend.close();
  });

  test("see their own ranks only, in the tick that changes them", async () => {
    const diary = new Diary();
    const plugins = await diary.bundle(classifies);
    const a = await createRouter({ model: "a", plugins, workers: [worker("1")] });
    const b = await createRouter({ model: "b", plugins, workers: [worker("7", { dpSize: 2, totalKvBlocks: 50 })] });
    const [seenByA, seenByB] = diary.contexts;
    expect(seenByA!.workers()).toEqual([{ worker: { workerId: "1", dpRank: 0 } }]);
    expect(seenByB!.workers()).toEqual([
      { worker: { workerId: "7", dpRank: 0 }, totalKvBlocks: 50 },
      { worker: { workerId: "7", dpRank: 1 }, totalKvBlocks: 50 },
    ]);
    a.addWorker(worker("2", { totalKvBlocks: 9 }));
    expect(seenByA!.workers()).toContainEqual({ worker: { workerId: "2", dpRank: 0 }, totalKvBlocks: 9 });
    a.removeWorker("1");
    expect(seenByA!.workers()).toEqual([{ worker: { workerId: "2", dpRank: 0 }, totalKvBlocks: 9 }]);
    expect(seenByB!.workers()).toHaveLength(2);
    const kept = seenByA!.workers();
    kept.pop();
    expect(seenByA!.workers()).toHaveLength(1);
    await Promise.all([a.close(), b.close()]);
  });

  test("a model that is removed and added again starts afresh", async () => {
    const diary = new Diary();
    const frontend = frontendOf(await diary.bundle(`${selects("aggregated")}\n${classifies}`));
    await frontend.start();
    expect(await frontend.removeModel("a")).toBe(true);
    expect(diary.closed).toEqual(["classifier 0", "a/default/aggregated"]);
    expect((await ask(frontend, "a", "r1")).status).toBe(404);
    await frontend.addModel({ model: "a", workers: [worker("1")] });
    expect(diary.factories.filter((name) => name.startsWith("a/"))).toHaveLength(2);
    expect(diary.contexts).toHaveLength(3);
    expect(diary.providers).toHaveLength(2);
    expect((await ask(frontend, "a", "r1")).status).toBe(200);
    await expect(frontend.addModel({ model: "a" })).rejects.toEqual(coded("already_started"));
    for (const path of ["plugins", "policy", "fetch", "tokenizer"]) {
      const own = { model: "c", [path]: {} };
      await expect(frontend.addModel(own)).rejects.toEqual(coded("invalid_config", path));
    }
    await frontend.close();
  });
});

test("the same bundle decides alike in a frontend and in createRouter", async () => {
  const catalog = {
    register(registry: { registerWorkerSelection(name: string, provider: () => unknown): void }) {
      registry.registerWorkerSelection(
        "draws",
        () => () =>
          new WorkerSelectionPolicy({ label: "draws", picker: { pick: (ctx, rows) => ctx.randomBelow(rows.length) } }),
      );
    },
  };
  const policy = await parsePolicy("worker_selection: {aggregated: d, instances: [{name: d, type: draws}]}");
  const plugins = createRegistry(catalog as never).resolvePlugins(policy);
  const workers = Array.from({ length: 9 }, (_, i) => worker(String(i)));
  const router = await createRouter({ model: "m", seed: 5n, plugins, workers });
  const frontend = new HttpFrontend({
    models: [{ model: "m", seed: 5n, workers }],
    fetch: async () => new Response("{}"),
  }).plugins(plugins);
  const chosen: string[][] = [[], []];
  for (let i = 0; i < 40; i++) {
    const selection = await router.select({ tokens });
    chosen[0]!.push(selection.worker.workerId);
    selection.booking.complete();
    const answer = await ask(frontend, "m", `r${i}`);
    chosen[1]!.push(answer.headers.get("x-warmroute-worker")!);
    await answer.text();
  }
  expect(new Set(chosen[0]).size).toBeGreaterThan(4);
  expect(chosen[1]).toEqual(chosen[0]);
  await Promise.all([router.close(), frontend.close()]);
});

test("a policy of another copy of the package is told from other garbage", async () => {
  class WorkerSelectionPolicy {}
  const stranger = new RouterPlugins().withWorkerSelection(() => new WorkerSelectionPolicy() as never);
  await expect(createRouter({ plugins: stranger })).rejects.toEqual(
    expect.objectContaining({ code: "invalid_plugin", message: expect.stringContaining("another copy of warmroute") }),
  );
  const garbage = new RouterPlugins().withWorkerSelection(() => ({}) as never);
  await expect(createRouter({ plugins: garbage })).rejects.toEqual(
    expect.objectContaining({ code: "invalid_plugin", message: expect.not.stringContaining("another copy") }),
  );
});

describe("a construction that fails", () => {
  test.each(["classifier", "decode"] as const)("in the factory of %s closes what was built", async (failsFor) => {
    const diary = new Diary();
    diary.failsFor = failsFor;
    const plugins = await diary.bundle(`${selects("prefill", "decode")}\n${classifies}`);
    const workers = [worker("1", { role: "prefill" as const }), worker("2", { role: "decode" as const })];
    await expect(createRouter({ plugins, workers })).rejects.toEqual(coded("provider"));
    const built =
      failsFor === "classifier" ? ["default/default/decode", "default/default/prefill"] : ["default/default/prefill"];
    expect(diary.closed.sort()).toEqual(built);
  });

  test("of a worker's pool leaves the router as it was", async () => {
    const diary = new Diary();
    const plugins = await diary.bundle(selects("aggregated", "decode"));
    const router = await createRouter({ plugins, workers: [worker("1")] });
    diary.failsFor = "decode";
    expect(() => router.addWorker(worker("2", { role: "decode" as const }))).toThrow(coded("provider"));
    expect(router.workers().map(({ workerId }) => workerId)).toEqual(["1"]);
    expect(router.loads()).toHaveLength(1);
    diary.failsFor = undefined;
    router.addWorker(worker("2", { role: "decode" as const }));
    expect(router.loads()).toHaveLength(2);
    await router.close();
  });

  test("of a frontend's second model takes the first one back", async () => {
    const diary = new Diary();
    const plugins = await diary.bundle(selects("aggregated"));
    const frontend = new HttpFrontend({
      models: [
        { model: "a", workers: [worker("1")] },
        { model: "b", blockSize: 0 },
      ],
    }).plugins(plugins);
    await expect(frontend.start()).rejects.toEqual(coded("invalid_block_size"));
    expect(diary.closed).toEqual(["a/default/aggregated"]);
  });
});

test("closing is done once, and ends what is live", async () => {
  const diary = new Diary();
  const router = await createRouter({
    plugins: await diary.bundle(`${selects("aggregated")}\n${classifies}`),
    workers: [worker("1")],
  });
  const { booking } = await router.select({ requestId: "r", tokens });
  booking.sent();
  await Promise.all([router.close(), router.close()]);
  await settled();
  expect(diary.closed).toEqual(["classifier 0", "default/default/aggregated"]);
  expect(diary.events.map(({ type }) => type)).toEqual(["sent", "aborted"]);
  await expect(router.select({ requestId: "s", tokens })).rejects.toEqual(coded("shutting_down"));
});

test("a worker that leaves ends its requests, and tells the policy its slot", async () => {
  const diary = new Diary();
  const router = await createRouter({
    plugins: await diary.bundle(`${selects("aggregated")}\n${classifies}`),
    workers: [worker("1")],
  });
  const { booking } = await router.select({ requestId: "r", tokens });
  booking.firstToken();
  router.removeWorker("1");
  await settled();
  expect(diary.events.map(({ type }) => type)).toEqual(["sent", "responding", "aborted"]);
  expect(diary.released).toEqual([0]);
  booking.complete();
  await settled();
  expect(diary.events).toHaveLength(3);
  router.addWorker(worker("2"));
  // The id is free again.
  await router.select({ requestId: "r", tokens });
  await router.close();
});

describe("options that contradict each other", () => {
  test("a policy file beside a bundle", async () => {
    const policy = await parsePolicy(classifies);
    await expect(createRouter({ policy, plugins: new RouterPlugins() })).rejects.toEqual(
      coded("invalid_config", "policy"),
    );
  });

  test("a policy file that names a classifier, without a bundle", async () => {
    const policy = await parsePolicy(classifies, { file: "p.yaml" });
    await expect(createRouter({ policy })).rejects.toEqual(
      expect.objectContaining({ code: "classifier_not_installed", path: "request_classifier.type", line: 1 }),
    );
  });

  test("a policy file that selects a type of some catalog, without a catalog", async () => {
    const policy = await parsePolicy(selects("aggregated"));
    await expect(createRouter({ policy })).rejects.toEqual(
      coded("no_catalog_installed", "worker_selection.instances[0].type"),
    );
  });

  test("a policy file of shipped types needs no bundle", async () => {
    const policy = await parsePolicy(
      "worker_selection: {aggregated: t, instances: [{name: t, type: dynamo-two-tier-cost-fn}, {name: u, type: other}]}",
    );
    const router = await createRouter({ policy, workers: [worker("1")] });
    expect((await router.select({ tokens })).policy).toBe("dynamo-two-tier-cost-fn");
    await router.close();
  });

  test("engine events for a policy that reads no caches", async () => {
    const diary = new Diary();
    const plugins = await diary.bundle(selects("aggregated"));
    const error = await createRouter({ plugins, workers: [worker("1")], config: { useKvEvents: true } }).catch(
      (e) => e,
    );
    expect(error).toEqual(coded("index_required"));
    expect(error.message).toMatch(/useKvEvents.*noted/);
    const router = await createRouter({ plugins, workers: [worker("1")] });
    const stored = { stored: { parent_hash: null, blocks: [{ block_hash: "1", tokens_hash: "2" }] } };
    expect(router.applyEvent({ worker_id: "1", event: { data: stored } })).toEqual({
      applied: false,
      reason: "no_index",
    });
    expect(router.stats().index).toMatchObject({ blocks: 0, refused: 1 });
    expect(() => router.overlap({ tokens })).toThrow(coded("index_required"));
    const { overlap, booking } = await router.select({ tokens });
    expect(overlap.deviceBlocks).toBe(0);
    expect(router.loads()[0]!.activePrefillTokens).toBe(100);
    booking.free();
    await router.close();
  });

  test("plugins() after the first router, and other plugins than a router's own", async () => {
    const diary = new Diary();
    const plugins = await diary.bundle(classifies);
    const frontend = frontendOf(plugins);
    await frontend.start();
    expect(() => frontend.plugins(plugins)).toThrow(coded("already_started"));
    await frontend.close();
    const router = await createRouter({ model: "a" });
    expect(() => new HttpFrontend({ routers: [router] }).plugins(plugins)).toThrow(coded("invalid_config", "routers"));
    const alike = await createRouter({ model: "b", plugins });
    new HttpFrontend({ routers: [alike] }).plugins(plugins);
    await Promise.all([router.close(), alike.close()]);
  });
});
