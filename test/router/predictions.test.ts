// What ranks are believed to hold, through the router: figures, snapshots, refusals.
import { describe, expect, test } from "vitest";
import "../../src/kernel/inlined.js";
import { hashTokens } from "../../src/kernel/hash.js";
import type { RouterOptions, Selection } from "../../src/router/contract.js";
import { createRouter } from "../../src/router/create-router.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const log = { error: () => {}, warn: () => {}, info: () => {}, debug: () => {} };
const tokens = (seed: number, blocks = 8) => Uint32Array.from({ length: blocks * 16 }, (_, i) => seed * 10_000 + i);
const coded = (code: string, more: object = {}) => expect.objectContaining({ code, ...more });

async function open(options: Partial<RouterOptions> = {}) {
  const clock = new VirtualClock(1000);
  const router = await createRouter({
    clock,
    log,
    blockSize: 16,
    seed: 1,
    workers: [{ workerId: 1 }, { workerId: 2 }],
    ...options,
  });
  const kept: Selection[] = [];
  const select = async (seed: number, blocks?: number, workerId?: number) => {
    const pin = workerId === undefined ? {} : { pinnedWorker: { workerId, dpRank: 0 } };
    const selection = await router.select({ tokens: tokens(seed, blocks), ...pin });
    kept.push(selection);
    return selection;
  };
  /** Leading blocks of a prompt on the worker that has most of it. */
  const held = (seed: number, blocks?: number) =>
    Math.max(0, ...router.overlap({ tokens: tokens(seed, blocks) }).map(({ deviceBlocks }) => deviceBlocks));
  return { clock, router, select, held };
}

const predicted = { config: { routerPredictedTtlSecs: 5 } };

test("predict-on-route: the second of two siblings finds the first, until the time is over", async () => {
  const { clock, router, select, held } = await open({ ...predicted, decisionLog: 4 });
  await select(1);
  const second = await select(1);
  expect(second).toMatchObject({ evidence: "predicted", cachedTokens: 128, effectivePrefillTokens: 0 });
  expect(router.decisions().map(({ selected }) => selected?.evidence)).toEqual(["none", "predicted"]);
  expect(router.stats().predictions).toEqual({ live: 2, dropped: 0 });
  await clock.advance(5000);
  expect(held(1)).toBe(0);
  expect(router.stats().predictions).toEqual({ live: 0, dropped: 0 });
  expect(clock.armed).toBe(0);
});

test("evidence is approximate without events, and nothing is said of predictions where there are none", async () => {
  const { select } = await open({ config: { useKvEvents: false } });
  await select(1);
  expect((await select(1)).evidence).toBe("approximate");
  expect((await open()).router.stats().predictions).toBeUndefined();
});

test("tokens that are not the engine's own make every overlap an estimate, also in the decision log", async () => {
  const { router } = await open({ ...predicted, decisionLog: 4 });
  const kept = [true, true, false].map((tokensExact) => router.select({ tokens: tokens(1), tokensExact }));
  const evidence = (await Promise.all(kept)).map((selection) => selection.evidence);
  expect(evidence).toEqual(["none", "predicted", "approximate"]);
  expect(router.decisions().map(({ selected }) => selected?.evidence)).toEqual(evidence);
});

test("a request that waited finds what others were sent meanwhile", async () => {
  const { router, select, clock } = await open({
    config: { useKvEvents: false, routerQueueThreshold: 0 },
    workers: [{ workerId: 1, maxNumBatchedTokens: 1000 }],
  });
  const first = await select(1);
  const second = select(1);
  await clock.advance(1);
  expect(router.stats().queue.pending).toBe(1);
  first.booking.firstToken();
  expect(await second).toMatchObject({ evidence: "approximate", cachedTokens: 128 });
});

test("predict-on-route needs events: invalid_config", async () => {
  await expect(open({ config: { useKvEvents: false, routerPredictedTtlSecs: 5 } })).rejects.toThrow(
    coded("invalid_config", { path: "config.routerPredictedTtlSecs" }),
  );
});

describe("a snapshot", () => {
  test("has them with the load, each with the time it has left", async () => {
    const from = await open(predicted);
    await from.select(1);
    await from.clock.advance(2000);
    await from.select(2);
    const bytes = from.router.snapshot();
    const to = await open(predicted);
    expect(to.held(1)).toBe(0);
    to.router.restore(bytes);
    expect([to.held(1), to.held(2)]).toEqual([8, 8]);
    await to.clock.advance(3000);
    expect([to.held(1), to.held(2)]).toEqual([0, 8]);
    await to.clock.advance(2000);
    expect(to.router.stats().predictions).toEqual({ live: 0, dropped: 0 });
    expect(to.router.stats().bookings.live).toBe(2);
    to.router.freeAll();
    expect(to.router.loads().every((row) => row.activeDecodeBlocks + row.activeRequests === 0)).toBe(true);
  });

  test("has what the capacity of ranks lets them hold, in the order in which it goes", async () => {
    const options = { config: { useKvEvents: false }, workers: [{ workerId: 1, totalKvBlocks: 20 }] };
    const from = await open(options);
    const [first] = [await from.select(1), await from.select(2)];
    first!.booking.free();
    const to = await open(options);
    to.router.restore(from.router.snapshot());
    to.router.freeAll();
    (await to.select(3)).booking.firstToken();
    expect([1, 2, 3].map((seed) => to.held(seed))).toEqual([4, 8, 8]);
  });

  test("lets them follow the restored requests: what comes to nothing leaves nothing, output takes room", async () => {
    for (const worker of [{ workerId: 1 }, { workerId: 1, totalKvBlocks: 20 }]) {
      const options = { config: { useKvEvents: false }, workers: [worker] };
      const from = await open(options);
      const [nothing, talker] = [await from.select(1), await from.select(2)];
      const to = await open(options);
      to.router.restore(from.router.snapshot());
      to.router.booking(nothing!.requestId)!.abort();
      expect([to.held(1), to.held(2)]).toEqual([0, 8]);
      (await to.select(3)).booking.complete();
      const booking = to.router.booking(talker!.requestId)!;
      booking.tokens(6 * 16);
      expect(to.held(3)).toBe("totalKvBlocks" in worker ? 6 : 8);
      booking.abort();
      expect(to.held(2)).toBe(8);
      expect(to.router.stats().bookings.live).toBe(0);
    }
  });

  test("gives a rank no more than it can hold, and neither does a smaller capacity", async () => {
    const of = (totalKvBlocks?: number) => ({
      config: { useKvEvents: false },
      workers: [{ workerId: 1, ...(totalKvBlocks && { totalKvBlocks }) }],
    });
    const from = await open(of());
    for (const seed of [1, 2]) (await from.select(seed)).booking.complete();
    const to = await open(of(10));
    to.router.restore(from.router.snapshot());
    expect([to.held(1), to.held(2)]).toEqual([2, 8]);
    to.router.addWorker({ workerId: 1, totalKvBlocks: 5 });
    expect([to.held(1), to.held(2)]).toEqual([0, 5]);
  });

  test("of the same router: what was selected since ends without touching what was restored", async () => {
    const { router, select, held } = await open(predicted);
    await select(1);
    const bytes = router.snapshot();
    const later = [await select(2), await select(3)];
    router.restore(bytes);
    for (const { booking } of later) booking.abort();
    expect([held(1), held(2), held(3)]).toEqual([8, 0, 0]);
    expect(router.stats().predictions).toEqual({ live: 1, dropped: 0 });
  });

  test("keeps the router's own when only the index is restored", async () => {
    const { router, select, held } = await open(predicted);
    await select(1, 8, 2);
    router.restore((await open(predicted)).router.snapshot(), { parts: ["index"] });
    expect(router.overlap({ tokens: tokens(1) })).toMatchObject([{ workerId: "2", deviceBlocks: 8 }]);
    await select(1, 12, 2);
    expect(held(1, 12)).toBe(12);
  });

  test("goes without them into a router that predicts nothing, and in as it counts there", async () => {
    const from = await open({ config: { useKvEvents: false }, workers: [{ workerId: 1 }] });
    await from.select(1);
    const bytes = from.router.snapshot();
    const without = await open();
    without.router.restore(bytes);
    expect([without.held(1), without.router.stats().bookings.live]).toEqual([0, 1]);
    const shorter = await open(predicted);
    shorter.router.restore(bytes);
    await shorter.clock.advance(4999);
    expect(shorter.held(1)).toBe(8);
    await shorter.clock.advance(1);
    expect(shorter.held(1)).toBe(0);
    const byCapacity = await open({ config: { useKvEvents: false }, workers: [{ workerId: 1, totalKvBlocks: 10 }] });
    byCapacity.router.restore(bytes);
    byCapacity.router.freeAll();
    (await byCapacity.select(2, 6)).booking.firstToken();
    expect([byCapacity.held(1), byCapacity.held(2)]).toEqual([4, 6]);
  });
});

describe("what is booked without a selection", () => {
  const hashes = hashTokens(tokens(1), 16).sequenceHashes;
  const reserve = async (options: object) => {
    const { router, clock } = await open({ workers: [{ workerId: 1 }], ...options });
    const book = (requestId: string) =>
      router.reserve({ requestId, worker: { workerId: 1 }, sequenceHashes: hashes, islTokens: 128 });
    const bookings = [book("a"), book("b")];
    const { activeDecodeBlocks, activePrefillTokens } = router.loads()[0]!;
    return { bookings, router, clock, charged: [activeDecodeBlocks, activePrefillTokens] };
  };

  test.each([
    [{}, [8, 256]],
    [{ routerAssumeKvReuse: false }, [16, 256]],
    [{ routerTrackActiveBlocks: false }, [0, 256]],
    [{ routerTrackPrefillTokens: false }, [8, 0]],
  ])("is charged as the configuration %j says", async (config, charged) => {
    const reserved = await reserve({ config });
    expect(reserved.charged).toEqual(charged);
    for (const booking of reserved.bookings) booking.free();
    expect(reserved.router.loads()[0]).toMatchObject({ activeDecodeBlocks: 0, activePrefillTokens: 0 });
  });

  test("decays as the model of prefills says", async () => {
    const { router, clock } = await reserve({ prefillLoadModel: ({ newTokens }: { newTokens: number }) => newTokens });
    await clock.advance(64);
    expect(router.loads()[0]!.activePrefillTokens).toBe(192);
  });
});
