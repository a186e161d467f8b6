// Code that is not ours, in every place where a router or a frontend calls it: it may throw, be asynchronous, or be late.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import "../../src/kernel/inlined.js";
import { HttpFrontend } from "../../src/frontend/index.js";
import { perRow, RouterPlugins, WorkerSelectionPolicy } from "../../src/plugins.js";
import { createRouter } from "../../src/router/create-router.js";

const tokens = Uint32Array.of(1, 2, 3);
const workers = [{ workerId: "1", url: "http://w" }];
const coded = (code: string) => expect.objectContaining({ code });
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const rejects = async () => {
  throw new Error("nobody awaits this");
};
const later = () => new Promise((resolve) => setTimeout(resolve, 5));

const unhandled: unknown[] = [];
const note = (reason: unknown) => void unhandled.push(reason);
beforeEach(() => void process.on("unhandledRejection", note));
afterEach(async () => {
  await later();
  process.off("unhandledRejection", note);
  expect(unhandled.splice(0)).toEqual([]);
});

const ask = (frontend: HttpFrontend, model = "m") =>
  frontend.fetch(
    new Request("http://r/v1/completions", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model, prompt: "a" }),
    }),
  );

test("a cost that is promised is none", async () => {
  const plugins = new RouterPlugins().withWorkerSelection(
    () => new WorkerSelectionPolicy({ label: "late", scorers: [perRow(0, rejects as never)] }),
  );
  const router = await createRouter({ plugins, workers });
  await expect(router.select({ tokens })).rejects.toEqual(coded("non_finite_cost"));
  await router.close();
});

test("what a classifier sets with a promise is refused", async () => {
  const plugins = new RouterPlugins().withRequestClassifier(() => ({
    classify: (request) => request.setDueAtMs(rejects() as never).setPolicyClass(rejects() as never),
  }));
  const router = await createRouter({ plugins, workers, log: silent });
  await expect(router.select({ requestId: "r", tokens })).rejects.toEqual(coded("invalid_classification_metadata"));
  await router.close();
});

test("a component may take the methods off its view", async () => {
  const plugins = new RouterPlugins().withWorkerSelection(
    () =>
      new WorkerSelectionPolicy({
        label: "apart",
        filters: [{ keep: (_ctx, { label }, row) => label(row, "zone") === "a" }],
        scorers: [{ score: (_ctx, { workerId, length }, costs) => void costs.fill(Number(workerId(length - 1))) }],
      }),
  );
  const router = await createRouter({
    plugins,
    workers: [{ workerId: "1" }, { workerId: "2", labels: { zone: "a" } }],
  });
  expect((await router.select({ tokens })).worker.workerId).toBe("2");
  await router.close();
});

describe("a frontend answers", () => {
  const proxy = new Proxy(new Error("x"), {
    getPrototypeOf() {
      throw new Error("look away");
    },
  });
  const throwing = () => {
    throw proxy;
  };
  test.each([
    ["an onError that throws", { onError: throwing }, "m2", 404],
    ["an onError that rejects", { onError: rejects }, "m2", 404],
    ["an onDecision that rejects", { onDecision: rejects }, "m", 200],
    ["an onDecision that throws what cannot be looked at", { onDecision: throwing }, "m", 500],
    ["a tokenizer that throws what cannot be looked at", { tokenizer: { exact: false, encode: throwing } }, "m", 500],
    ["a tokenizer that is asynchronous", { tokenizer: { exact: false, encode: rejects as never } }, "m", 500],
  ])("with %s", async (_what, options, model, status) => {
    const frontend = new HttpFrontend({
      models: [{ model: "m", workers }],
      fetch: async () => Response.json({}),
      ...options,
    });
    const answer = await ask(frontend, model);
    expect(answer.status).toBe(status);
    await answer.text();
    await frontend.close();
  });

  test("and closes a router that it was still building", async () => {
    let closed = 0;
    const plugins = new RouterPlugins().withWorkerSelection(
      () => new WorkerSelectionPolicy({ label: "counted", close: () => void closed++ }),
    );
    const frontend = new HttpFrontend({ plugins });
    const adding = frontend.addModel({ model: "m", workers });
    await frontend.close();
    await expect(adding).rejects.toEqual(coded("shutting_down"));
    expect(closed).toBe(1);
  });
});

describe("a caller that gave up", () => {
  test("before a retry books nothing", async () => {
    const router = await createRouter({ workers });
    const selection = await router.select({ tokens });
    await expect(selection.retry({ signal: AbortSignal.abort(new Error("gone")) })).rejects.toThrow("gone");
    expect(router.stats().bookings.live).toBe(0);
    await router.close();
  });

  test("while a classifier answered at once books nothing", async () => {
    const leave = new AbortController();
    const plugins = new RouterPlugins().withRequestClassifier(() => ({
      classify(request) {
        leave.abort(new Error("gone"));
        return request;
      },
    }));
    const router = await createRouter({ plugins, workers });
    await expect(router.select({ requestId: "r", tokens }, { signal: leave.signal })).rejects.toThrow("gone");
    expect(router.stats().bookings.live).toBe(0);
    await router.close();
  });
});

test("a grace beyond the longest timer leaves plugins their time", async () => {
  let closed = false;
  const plugins = new RouterPlugins().withRequestClassifier(() => ({
    async close() {
      await later();
      closed = true;
    },
  }));
  const router = await createRouter({ plugins, workers, log: silent });
  await router.close({ graceMs: 3e9 });
  expect(closed).toBe(true);
});

test("a classification has no longer time than a timer can wait", async () => {
  await expect(createRouter({ classifyTimeoutMs: 2 ** 31 })).rejects.toEqual(
    expect.objectContaining({ code: "invalid_config", path: "classifyTimeoutMs" }),
  );
});
