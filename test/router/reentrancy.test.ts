// A component that calls its own router in the middle of a decision is refused, and nothing moves.
import { expect, test } from "vitest";
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
  snapshot: (router) => router.snapshot(),
  restore: (router, snapshot) => router.restore(snapshot),
};

test.each(Object.keys(calls))("%s", async (name) => {
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
  const before = JSON.stringify([router.workers(), router.loads(), router.stats().index.blocks]);
  call = (inner) => calls[name]!(inner, snapshot);
  await expect(router.select({ tokens })).rejects.toEqual(expect.objectContaining({ code: "policy_failed" }));
  call = undefined;
  expect(JSON.stringify([router.workers(), router.loads(), router.stats().index.blocks])).toBe(before);
  expect(router.snapshot()).toEqual(snapshot);
  (await router.select({ tokens })).booking.free();
  (await router.select({ tokens, role: "decode" })).booking.free();
  await router.close();
});
