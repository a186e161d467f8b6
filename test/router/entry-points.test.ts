// What each entry point does with plugins (spec: plugins.md §6), and which calls classify.
import { describe, expect, test } from "vitest";
import { commandLine } from "../../src/cli/main.js";
import { type WorkerRole, workerRoles } from "../../src/core/types.js";
import { HttpFrontend } from "../../src/frontend/index.js";
import * as library from "../../src/index.js";
import { RouterPlugins } from "../../src/plugins.js";
import { assertHonoured, assertServed } from "../../src/router/construct.js";
import { type EntryPointName, entryPoints, routerCalls } from "../../src/router/entry-points.js";
import type { KvRouter } from "../../src/router/kv-router.js";
import { classifies, Diary, selects, settled } from "./plugin-bundle.js";

const names = Object.keys(entryPoints) as EntryPointName[];
const coded = (code: string) => expect.objectContaining({ code });
const tokens = Uint32Array.of(1, 2, 3);
const body = { model: "m", prompt: "one two three" };

/** Functions of the library that build no router. */
const buildNone = [
  ...["RouterPluginRegistry", "RouterPlugins", "WorkerSelectionPolicy", "WorkerSelectionPolicyRegistry"],
  ...["WarmrouteError", "createRegistry", "hashTokens", "init", "parsePolicy", "perRow"],
];

test("every exported function and every verb has its row", () => {
  const functions = Object.entries(library).filter(([, value]) => typeof value === "function");
  const builders = functions.map(([name]) => name).filter((name) => !buildNone.includes(name));
  const verbs = commandLine(true).commands.map((command) => `warmroute ${command.name()}`);
  expect([...builders, ...verbs].sort()).toEqual([...names].sort());
});

test("every call of a router that answers where to go has its row", () => {
  const decides = ["generate", "fetch", "route", "select", "probe", "bestWorker", "overlap", "reserve"];
  expect(Object.keys(routerCalls).sort()).toEqual(decides.sort());
  const others = [
    ...["addWorker", "applyEvent", "booking", "close", "constructor", "freeAll", "loads", "removeBlocks"],
    ...["busyThresholds", "decisions", "setAvailable", "setOverloaded"],
    ...["removeWorker", "restore", "serveAt", "snapshot", "stats", "storeBlocks", "workers"],
  ];
  const methods = Object.getOwnPropertyNames(library.KvRouter.prototype);
  expect(methods.filter((name) => !others.includes(name) && name !== "fetch").sort()).toEqual(
    decides.filter((name) => name !== "fetch").sort(),
  );
});

describe.each(names)("%s", (name) => {
  const row = entryPoints[name];

  test(`a classifier is ${row.requestClassifier}`, async () => {
    const plugins = await new Diary().bundle(classifies);
    if (row.requestClassifier === "installed") assertHonoured(name, plugins);
    else expect(() => assertHonoured(name, plugins)).toThrow(coded("classifier_not_supported"));
  });

  test.each(workerRoles)("a policy and a worker of the role %s", async (role) => {
    const plugins = await new Diary().bundle(selects(role));
    const served = (row.roles as readonly WorkerRole[]).includes(role);
    for (const attempt of [() => assertHonoured(name, plugins), () => assertServed(name, { workerId: "1", role })]) {
      if (served) attempt();
      else expect(attempt).toThrow(coded("role_not_served"));
    }
  });

  test("nothing, default and queue profiles are fine everywhere", async () => {
    const profile =
      "default_policy_family: f\nuncached_isl_buckets: [{min_tokens: 0, bucket: b}]\npolicy_classes: [{name: c, policy_family: f, cache_bucket: b, quantum: 1}]";
    for (const yaml of [profile, "worker_selection: {aggregated: default, prefill: default}"]) {
      const plugins = await new Diary().bundle(yaml);
      expect(plugins.isEmpty()).toBe(true);
      assertHonoured(name, plugins);
    }
    assertHonoured(name, new RouterPlugins());
  });
});

describe("a frontend", () => {
  test("refuses a worker of another role by its name, whenever it comes", async () => {
    const router = await library.createRouter({ workers: [{ workerId: "9", role: "decode" }] });
    expect(() => new HttpFrontend({ routers: [router] })).toThrow(/worker 9 has the role decode/);
    const later = await library.createRouter();
    new HttpFrontend({ routers: [later] });
    expect(() => later.addWorker({ workerId: "9", role: "prefill" })).toThrow(coded("role_not_served"));
    expect(later.workers()).toEqual([]);
    await Promise.all([router.close(), later.close()]);
  });

  test("refuses a policy for another role, but not a factory for all", async () => {
    const diary = new Diary();
    const decode = await diary.bundle(selects("aggregated", "decode"));
    expect(() => new HttpFrontend({}).plugins(decode)).toThrow(coded("role_not_served"));
    const { workerSelection } = await diary.bundle(selects("aggregated"));
    new HttpFrontend({}).plugins(new RouterPlugins().withWorkerSelection(workerSelection!));
  });
});

describe("roles of a library router", () => {
  const workers = workerRoles.map((role, i) => ({ workerId: String(i), role }));

  test("each run their own policy, made once", async () => {
    const diary = new Diary();
    const router = await library.createRouter({ plugins: await diary.bundle(selects("prefill", "encode")), workers });
    expect(diary.factories.sort()).toEqual(["default/default/encode", "default/default/prefill"]);
    for (const role of workerRoles) {
      const { worker, policy, booking } = await router.select({ tokens, role });
      expect(worker.workerId).toBe(String(workerRoles.indexOf(role)));
      expect(policy).toBe(role === "prefill" || role === "encode" ? "noted" : "dynamo-default-cost-fn");
      booking.free();
    }
    await router.close();
  });

  test.each([
    ["aggregated", 1, {}],
    ["decode", 1, {}],
    ["prefill", 0, { select: 1 }],
    ["encode", 0, {}],
  ] as const)("%s requests are classified %i times", async (role, times, bypassed) => {
    const diary = new Diary();
    const router = await library.createRouter({ plugins: await diary.bundle(classifies), workers });
    (await router.select({ requestId: "r", tokens, role })).booking.complete();
    await settled();
    expect(diary.classified).toHaveLength(times);
    expect(diary.events.map(({ type }) => type)).toEqual(times === 1 ? ["completed"] : []);
    expect(router.stats().classifier!.bypassed).toEqual(bypassed);
    await router.close();
  });
});

describe("a call on a router with a classifier", () => {
  const calls: Record<keyof typeof routerCalls, (router: KvRouter) => unknown> = {
    async generate(router) {
      const chunks = [];
      for await (const chunk of router.generate(body)) chunks.push(chunk);
      expect(chunks).toEqual([{ text: "yes" }]);
    },
    async fetch(router) {
      const request = new Request("http://router/v1/completions", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      expect(await (await router.fetch(request)).json()).toEqual({ text: "yes" });
    },
    async route(router) {
      const selection = await router.route(body);
      const { url, init } = selection.dispatch!;
      expect(url).toBe("http://w1/v1/completions");
      expect(JSON.parse(new TextDecoder().decode(init.body as Uint8Array))).toEqual(body);
      await (await selection.track(new Response("yes"))).text();
    },
    select: async (router) => (await router.select({ requestId: "r", tokens })).booking.complete(),
    probe: (router) => expect(router.probe({ tokens }).outcome).toBe("selected"),
    bestWorker: (router) => expect(router.bestWorker({ tokens })).toEqual({ workerId: "1", dpRank: 0 }),
    overlap: (router) => expect(router.overlap({ tokens })).toEqual([]),
    reserve: (router) =>
      router.reserve({ requestId: "r", worker: { workerId: "1" }, sequenceHashes: ["5"], islTokens: 3 }).complete(),
  };

  test.each(Object.keys(calls) as (keyof typeof routerCalls)[])("%s", async (call) => {
    const diary = new Diary();
    const router = await library.createRouter({
      model: "m",
      plugins: await diary.bundle(classifies),
      workers: [{ workerId: "1", url: "http://w1" }],
      fetch: async () => Response.json({ text: "yes" }),
    });
    await calls[call](router);
    await settled();
    const once = routerCalls[call] === "classifies";
    expect(diary.classified).toHaveLength(once ? 1 : 0);
    expect(diary.events.filter(({ type }) => type === "completed")).toHaveLength(once ? 1 : 0);
    expect(diary.events.some(({ type }) => type === "aborted")).toBe(false);
    if (!once) expect(diary.events).toEqual([]);
    expect(router.stats().classifier!.bypassed).toEqual(["probe", "bestWorker"].includes(call) ? { [call]: 1 } : {});
    expect(router.stats().bookings.live).toBe(0);
    await router.close();
  });

  test("select bypasses it only when it says so", async () => {
    const diary = new Diary();
    const router = await library.createRouter({
      plugins: await diary.bundle(classifies),
      workers: [{ workerId: "1" }],
    });
    await expect(router.select({ tokens })).rejects.toEqual(coded("lifecycle_required"));
    (await router.select({ tokens, lifecycle: false })).booking.complete();
    (await router.select({ requestId: "r", tokens, lifecycle: false })).booking.complete();
    await settled();
    expect(diary.classified).toEqual([]);
    expect(diary.events).toEqual([]);
    expect(router.stats().classifier!.bypassed).toEqual({ select: 2 });
    await router.close();
  });
});
