// Values of the wrong kind at every door that takes workers, ranks, lists and options: refused by name, nothing done.
import { expect, test } from "vitest";
import "../../src/kernel/inlined.js";
import { createRouter } from "../../src/router/create-router.js";

const refused = (code: string, path: string) => expect.objectContaining({ name: "WarmrouteError", code, path });
const open = (options: object = {}) => createRouter({ seed: 1, workers: [{ workerId: 1 }], ...options });

test.each([
  [{ workerId: 1, dprank: 1 }, "dprank"],
  [{ workerId: 1, dpRank: null }, "dpRank"],
  [{ workerId: 1, dpRank: "0" }, "dpRank"],
  [{ workerId: null }, "workerId"],
  [{}, "workerId"],
])("a rank may not be %j", async (rank, field) => {
  for (const options of [{}, { config: { routerQueueThreshold: 0 } }]) {
    const r = await open(options);
    for (const key of ["pinnedWorker", "affinityTarget"]) {
      await expect(r.select({ tokens: [1], [key]: rank as never })).rejects.toThrow(
        refused("invalid_request", `${key}.${field}`),
      );
    }
    expect(() => r.reserve({ requestId: "r", worker: rank as never, sequenceHashes: [1n], islTokens: 1 })).toThrow(
      refused("invalid_request", `worker.${field}`),
    );
    expect(() => r.setOverloaded([rank as never])).toThrow(refused("invalid_request", `ranks[0].${field}`));
    expect(r.stats()).toMatchObject({ decisions: 0, bookings: { live: 0 } });
  }
});

test.each([BigUint64Array.of(1n), Uint8Array.of(1)])("allowedWorkerIds may be %o, and names workers", async (ids) => {
  const r = await open({ config: { routerQueueThreshold: 0 } });
  const { worker, booking } = await r.select({ tokens: [1], allowedWorkerIds: ids as never });
  expect(worker.workerId).toBe("1");
  booking.free();
});

test("a list with holes is refused", async () => {
  const r = await open();
  const holes = Array(2) as never;
  const ask = (more: object) => r.select({ tokens: [1], ...more });
  await expect(ask({ allowedWorkerIds: holes })).rejects.toThrow(refused("invalid_request", "allowedWorkerIds[0]"));
  await expect(ask({ routingConstraints: { requiredTaints: holes } })).rejects.toThrow(
    refused("invalid_request", "routingConstraints.requiredTaints"),
  );
  expect(() => r.setOverloaded(holes)).toThrow(refused("invalid_request", "ranks[0]"));
  expect(() => r.setAvailable(holes)).toThrow(refused("invalid_request", "workerIds[0]"));
});

test.each([Symbol("x"), Object.create(null), { valueOf: () => 3 }, "12", true, 5n])(
  "expectedOutputTokens may not be %o",
  async (expected) => {
    const r = await open();
    await expect(r.select({ tokens: [1], expectedOutputTokens: expected as never })).rejects.toThrow(
      refused("invalid_request", "expectedOutputTokens"),
    );
  },
);

test.each([5, "x", false, {}, undefined])("setAvailable and setOverloaded take no %o", async (value) => {
  const r = await open();
  expect(() => r.setAvailable(value as never)).toThrow(refused("invalid_request", "workerIds"));
  expect(() => r.setOverloaded(value as never)).toThrow(refused("invalid_request", "ranks"));
});

test.each(["nonsense", "toString", undefined, 5])("serveAt takes no %o", async (entryPoint) => {
  const r = await open();
  expect(() => r.serveAt(entryPoint as never)).toThrow(refused("invalid_request", "entryPoint"));
});

test.each([
  [{ policy: {} }, "policy"],
  [{ policy: { models: {} } }, "policy"],
  [{ memoryBudgetBytes: null }, "memoryBudgetBytes"],
  [{ maxRanks: null }, "maxRanks"],
])("createRouter takes no %j", async (options, path) => {
  await expect(open(options)).rejects.toThrow(refused("invalid_config", path));
});
