// A plugin that calls its own router in the middle of something is refused, and nothing moves.
import { describe, expect, test } from "vitest";
import "../../src/kernel/inlined.js";
import { RouterPlugins, WorkerSelectionPolicy } from "../../src/plugins.js";
import { createRouter } from "../../src/router/create-router.js";
import type { KvRouter } from "../../src/router/kv-router.js";

const tokens = Uint32Array.from({ length: 64 }, (_, i) => i);
const stored = { stored: { parent_hash: null, blocks: [{ block_hash: "1", tokens_hash: "2" }] } };

const calls: Record<string, (router: KvRouter, snapshot: Uint8Array) => unknown> = {
  probe: (router) => router.probe({ tokens }),
  bestWorker: (router) => router.bestWorker({ tokens }),
  reserve: (router) =>
    router.reserve({ requestId: "x", worker: { workerId: "1" }, sequenceHashes: ["1"], islTokens: 1 }),
  "applyEvent of a store": (router) => router.applyEvent({ worker_id: "1", event: { data: stored } }),
  "applyEvent of a clear": (router) => router.applyEvent({ worker_id: "1", event: { data: "cleared" } }),
  "addWorker of a new one": (router) => router.addWorker({ workerId: "9" }),
  "addWorker into another pool": (router) => router.addWorker({ workerId: "1", role: "decode" }),
  "addWorker with more ranks": (router) => router.addWorker({ workerId: "1", dpSize: 3 }),
  removeWorker: (router) => router.removeWorker("1"),
  busyThresholds: (router) => router.busyThresholds({ activePrefillTokensThreshold: 0 }),
  setOverloaded: (router) => router.setOverloaded([{ workerId: "1" }]),
  setAvailable: (router) => router.setAvailable([]),
  snapshot: (router) => router.snapshot(),
  restore: (router, snapshot) => router.restore(snapshot),
};

const stateOf = (router: KvRouter) =>
  JSON.stringify([router.workers(), router.loads(), router.stats().index.blocks, router.busyThresholds()]);

test.each(Object.keys(calls))("a component that calls %s", async (name) => {
  let router: KvRouter | undefined;
  let call: ((router: KvRouter) => unknown) | undefined;
  const plugins = new RouterPlugins().withWorkerSelection(
    ({ role }) =>
      new WorkerSelectionPolicy({
        label: role,
        scorers: [{ requiredInputs: 3, score: (_ctx, _rows, costs) => void costs.fill(0) }],
        picker: {
          pick() {
            if (router && call) call(router);
            return 0;
          },
        },
      }),
  );
  router = await createRouter({ plugins, seed: 1n, workers: [{ workerId: "1" }, { workerId: "2", role: "decode" }] });
  const snapshot = router.snapshot();
  const before = stateOf(router);
  call = (inner) => calls[name]!(inner, snapshot);
  await expect(router.select({ tokens })).rejects.toEqual(expect.objectContaining({ code: "policy_failed" }));
  call = undefined;
  expect(stateOf(router)).toBe(before);
  expect(router.snapshot()).toEqual(snapshot);
  (await router.select({ tokens })).booking.free();
  (await router.select({ tokens, role: "decode" })).booking.free();
  await router.close();
});

const coded = (code: string) => expect.objectContaining({ code });
const silent = { debug() {}, info() {}, warn() {}, error() {} };

describe("a change of workers begun in the middle of another", () => {
  test.each([
    ["removes it", (router: KvRouter) => router.removeWorker("1")],
    ["shrinks it", (router: KvRouter) => router.addWorker({ workerId: "1", dpSize: 1 })],
    ["moves it", (router: KvRouter) => router.addWorker({ workerId: "1", dpSize: 2, routingGroup: "other" })],
  ])("by onSlotReleased, when the host %s", async (_how, change) => {
    let router: KvRouter | undefined;
    const errors: unknown[] = [];
    const plugins = new RouterPlugins().withWorkerSelection(
      () =>
        new WorkerSelectionPolicy({
          label: "meddler",
          onSlotReleased() {
            try {
              router?.addWorker({ workerId: "1", dpSize: 4 });
            } catch (error) {
              errors.push(error);
            }
          },
        }),
    );
    router = await createRouter({ plugins, workers: [{ workerId: "1", dpSize: 2 }] });
    change(router);
    expect(errors.length).toBeGreaterThan(0);
    expect(errors[0]).toEqual(coded("policy_failed"));
    router.removeWorker("1");
    expect(router.loads()).toEqual([]);
    expect(router.workers()).toEqual([]);
    await router.close();
  });

  test("by the factory that is called for it", async () => {
    let router: KvRouter | undefined;
    const plugins = new RouterPlugins().withWorkerSelection(({ partition: { routingGroup } }) => {
      if (routingGroup === "b") router!.addWorker({ workerId: "20", routingGroup: "b" });
      return new WorkerSelectionPolicy({ label: "meddler" });
    });
    router = await createRouter({ plugins, workers: [{ workerId: "1" }] });
    expect(() => router!.addWorker({ workerId: "2", routingGroup: "b" })).toThrow(coded("provider"));
    expect(router.workers().map(({ workerId }) => workerId)).toEqual(["1"]);
    expect(router.loads()).toHaveLength(1);
    await router.close();
  });
});

describe("a router that is closed", () => {
  test("by a component answers no selection", async () => {
    let router: KvRouter | undefined;
    const plugins = new RouterPlugins().withWorkerSelection(
      () =>
        new WorkerSelectionPolicy({
          label: "closer",
          picker: {
            pick() {
              void router!.close();
              return 0;
            },
          },
        }),
    );
    router = await createRouter({ plugins, workers: [{ workerId: "1" }] });
    await expect(router.select({ tokens })).rejects.toEqual(coded("shutting_down"));
    await router.close();
    expect(router.stats().bookings.live).toBe(0);
  });

  test.each([0, 1, 2, 3, 4, 5, 6, 7, 8])(
    "%i microtasks after a classification answers no selection that lives",
    async (n) => {
      let resolve = () => {};
      const answered = new Promise<void>((done) => {
        resolve = done;
      });
      const plugins = new RouterPlugins().withRequestClassifier(() => ({
        classify: async (request) => {
          await answered;
          return request;
        },
      }));
      const router = await createRouter({ plugins, workers: [{ workerId: "1" }], log: silent });
      const asked = router.select({ requestId: "r", tokens }).then(
        () => undefined,
        (error: { code: string }) => error.code,
      );
      resolve();
      for (let i = 0; i < n; i++) await undefined;
      await router.close();
      const answer = await asked;
      if (answer !== undefined) expect(["shutting_down", "lifecycle_ended"]).toContain(answer);
      expect(router.stats().bookings.live).toBe(0);
    },
  );

  test("takes nothing new while its plugins hear of it", async () => {
    let router: KvRouter | undefined;
    const outcomes: unknown[] = [];
    const attempt = (make: () => unknown) => {
      try {
        outcomes.push(make());
      } catch (error) {
        outcomes.push((error as { code?: string }).code);
      }
    };
    const plugins = new RouterPlugins().withRequestClassifier(() => ({
      onEvent(event) {
        if (event.type !== "aborted") return;
        attempt(() => router!.probe({ tokens }));
        attempt(() => router!.addWorker({ workerId: "9" }));
        void router!.select({ tokens, lifecycle: false }).catch((error) => outcomes.push(error.code));
      },
    }));
    router = await createRouter({ plugins, workers: [{ workerId: "1" }] });
    await router.select({ requestId: "r", tokens });
    await router.close();
    await new Promise((resolve) => setTimeout(resolve));
    expect(outcomes).toEqual(["shutting_down", "shutting_down", "shutting_down"]);
    expect(router.stats().bookings.live).toBe(0);
  });

  test("does not wait for ever for a plugin's close, and closes the others", async () => {
    let closed = 0;
    const warned: string[] = [];
    const plugins = new RouterPlugins()
      .withWorkerSelection(() => new WorkerSelectionPolicy({ label: "fine", close: () => void closed++ }))
      .withRequestClassifier(() => ({ close: () => new Promise(() => {}) }));
    const log = { ...silent, warn: (message: string) => void warned.push(message) };
    const router = await createRouter({ plugins, workers: [{ workerId: "1" }], log });
    const start = performance.now();
    await router.close({ graceMs: 50 });
    expect(performance.now() - start).toBeLessThan(5000);
    expect(closed).toBe(1);
    expect(warned).toEqual([expect.stringContaining("close()")]);
  });
});

test("a component that has another selection retried leaves that one as it is", async () => {
  let retry: (() => Promise<unknown>) | undefined;
  const retried: Promise<unknown>[] = [];
  const plugins = new RouterPlugins().withWorkerSelection(
    ({ role }) =>
      new WorkerSelectionPolicy({
        label: role,
        picker: {
          pick() {
            if (retry) retried.push(retry());
            return 0;
          },
        },
      }),
  );
  const router = await createRouter({ plugins, seed: 1n, workers: [{ workerId: "1" }] });
  const first = await router.select({ tokens });
  retry = () => first.retry();
  const second = await router.select({ tokens });
  await expect(retried[0]).rejects.toEqual(expect.objectContaining({ code: "policy_failed" }));
  expect(second.booking).not.toBe(first.booking);
  expect(router.loads()[0]!.activeRequests).toBe(2);
  retry = undefined;
  router.freeAll();
  await router.close();
});

test("a policy that closes the router as it is closed closes it once", async () => {
  let closed = 0;
  let router: KvRouter | undefined;
  const plugins = new RouterPlugins().withWorkerSelection(
    ({ role }) =>
      new WorkerSelectionPolicy({
        label: role,
        picker: { pick: () => 0 },
        close() {
          closed++;
          void router!.close();
        },
      }),
  );
  router = await createRouter({ plugins, workers: [{ workerId: "1" }] });
  await router.close();
  await router.close();
  expect(closed).toBe(1);
});
