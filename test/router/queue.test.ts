// Requests that wait for a rank, through the library's router and on a clock that the test moves.
import { describe, expect, test } from "vitest";
import "../../src/kernel/inlined.js";
import { hashTokens } from "../../src/kernel/hash.js";
import { parsePolicy } from "../../src/plugins/policy/parse.js";
import type { RouterOptions, Selection } from "../../src/router/contract.js";
import { createRouter } from "../../src/router/create-router.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const log = { error: () => {}, warn: () => {}, info: () => {}, debug: () => {} };
const tokens = (seed: number, n = 256) => Uint32Array.from({ length: n }, (_, i) => seed * 10_000 + i);
const coded = (code: string) => expect.objectContaining({ code });

async function setUp(options: Partial<RouterOptions> = {}, count = 2) {
  const clock = new VirtualClock(1000);
  const workers = Array.from({ length: count }, (_, i) => ({ workerId: i + 1, maxNumBatchedTokens: 1000 }));
  const router = await createRouter({
    ...{ clock, log, workers, seed: 1, config: { routerQueueThreshold: 0 } },
    ...options,
  });
  let next = 0;
  /** A booking that nobody holds is freed. */
  const kept: Selection[] = [];
  const select = (more: object = {}, signal?: AbortSignal) => {
    const n = ++next;
    const selecting = router.select({ requestId: `r${n}`, tokens: tokens(n), ...more }, signal ? { signal } : {});
    return selecting.then((selection) => {
      kept.push(selection);
      return selection;
    });
  };
  const pending = () => router.stats().queue.pending;
  const idle = () =>
    router.loads().every((row) => row.activePrefillTokens + row.activeDecodeBlocks + row.activeRequests === 0);
  return { clock, router, select, pending, idle };
}

/** What came of a promise by now. */
async function stateOf(promise: Promise<unknown>): Promise<string> {
  let state = "waits";
  promise.then(
    () => (state = "selected"),
    (error) => (state = error.code ?? error.message),
  );
  await new Promise((resolve) => setTimeout(resolve, 0));
  return state;
}

describe("a request waits while every rank is busy", () => {
  test("and goes when one has finished its prefill; it says how long it waited", async () => {
    const { clock, select, pending, router } = await setUp();
    const [first] = [await select(), await select()];
    const third = select();
    expect(await stateOf(third)).toBe("waits");
    expect(router.stats().queue).toMatchObject({ pending: 1, pendingIslTokens: 256, byClass: { default: 1 } });
    await clock.advance(250);
    first.booking.firstToken();
    expect(await stateOf(third)).toBe("selected");
    expect((await third).queueWaitMs).toBe(250);
    expect((await third).worker).toEqual(first.worker);
    expect(pending()).toBe(0);
    expect(clock.armed).toBe(0);
  });

  test("each trigger lets it go: a booking that ends, a worker that comes or goes, an overload that ends", async () => {
    for (const trigger of ["free", "abort", "add", "remove", "overload", "available"]) {
      const { select, router } = await setUp({}, 1);
      const first = await select();
      if (trigger === "overload" || trigger === "available") router.addWorker({ workerId: 2 });
      if (trigger === "overload") router.setOverloaded([{ workerId: 2 }]);
      if (trigger === "available") router.setAvailable([1]);
      const second = select();
      expect(await stateOf(second)).toBe("waits");
      if (trigger === "free") first.booking.free();
      if (trigger === "abort") first.booking.abort();
      if (trigger === "add") router.addWorker({ workerId: 2 });
      if (trigger === "remove") router.removeWorker(1);
      if (trigger === "overload") router.setOverloaded([]);
      if (trigger === "available") router.setAvailable(null);
      expect(await stateOf(second)).toBe(trigger === "remove" ? "no_endpoints" : "selected");
    }
  });

  test("its id is taken meanwhile, and free again when it gave up", async () => {
    const { select, pending } = await setUp({}, 1);
    await select();
    const controller = new AbortController();
    const waiting = select({ requestId: "x" }, controller.signal);
    await expect(select({ requestId: "x" })).rejects.toThrow(coded("duplicate_request"));
    controller.abort(new Error("gave up"));
    await expect(waiting).rejects.toThrow("gave up");
    expect(pending()).toBe(0);
    expect(await stateOf(select({ requestId: "x" }))).toBe("waits");
  });

  test("a pin waits for its rank only", async () => {
    const { select } = await setUp();
    const first = await select({ pinnedWorker: { workerId: 1 } });
    const pinned = select({ pinnedWorker: { workerId: 1 } });
    expect(await stateOf(pinned)).toBe("waits");
    const free = await select();
    expect(free.worker.workerId).toBe("2");
    first.booking.firstToken();
    expect((await pinned).worker.workerId).toBe("1");
  });

  test("a pin that no rank can honour fails at once", async () => {
    const { select } = await setUp({}, 1);
    await select();
    expect(await stateOf(select({ pinnedWorker: { workerId: 1 }, allowedWorkerIds: [2] }))).toBe(
      "pinned_worker_not_allowed",
    );
    expect(await stateOf(select({ pinnedWorker: { workerId: 7 } }))).toBe("no_endpoints");
  });

  test("priority: a jump and a strict tier go first", async () => {
    const { clock, select } = await setUp({}, 1);
    let holder = await select();
    const went: string[] = [];
    const ask = (name: string, more: object) =>
      select(more).then((selection) => {
        went.push(name);
        holder = selection;
      });
    const all = [ask("late", {}), ask("jump", { priorityJump: 10 }), ask("strict", { strictPriority: 1 })];
    for (const _ of all) {
      holder.booking.free();
      await clock.advance(1);
    }
    expect(went).toEqual(["strict", "jump", "late"]);
  });
});

describe("policy classes", () => {
  const policy = () =>
    parsePolicy(`
default_policy_family: interactive
uncached_isl_buckets: [{ min_tokens: 0, bucket: all }]
policy_classes:
  - { name: chat, policy_family: interactive, cache_bucket: all, queue_policy: fcfs, quantum: 100 }
  - { name: batch, queue_policy: wspt, quantum: 10, prefill_busy_threshold: 300, request_queue_limit_per_worker: 1 }
`);

  test("C60: a batch class waits at a load at which the interactive one goes; its limit rejects with details", async () => {
    const { select } = await setUp({ policy: await policy() }, 1);
    const first = await select();
    await select();
    const batch = select({ policyClass: "batch" });
    expect(await stateOf(batch)).toBe("waits");
    expect((await select()).policyClass).toBe("chat");
    await expect(select({ policyClass: "batch" })).rejects.toMatchObject({
      code: "queue_rejected",
      status: 429,
      details: { policyClass: "batch", limitKind: "requests", current: 1, limit: 1 },
    });
    first.booking.free();
    expect(await stateOf(batch)).toBe("waits");
  });
});

describe("scenario 10: a caller that vanishes", () => {
  test.each(["queued", "at booking", "after delivery"])(
    "%s leaves no load, and the next one goes at once",
    async (when) => {
      const { select, idle, pending } = await setUp({}, 1);
      const holder = await select();
      const controller = new AbortController();
      const vanishing = select({}, controller.signal).catch((error: Error) => error);
      const next = select();
      expect(await stateOf(next)).toBe("waits");
      if (when === "queued") controller.abort(new Error("gone"));
      holder.booking.free();
      if (when === "at booking") queueMicrotask(() => controller.abort(new Error("gone")));
      if (when === "after delivery") ((await vanishing) as Selection).booking.abort();
      expect(await stateOf(next)).toBe("selected");
      (await next).booking.free();
      if (when !== "after delivery") expect(await vanishing).toBeInstanceOf(Error);
      expect([idle(), pending()]).toEqual([true, 0]);
    },
  );
});

describe("the end of a router", () => {
  test("answers whoever waits, and leaves nothing armed", async () => {
    const { clock, select, router, idle } = await setUp({}, 1);
    await select();
    const waiting = [select(), select()].map((wait) => wait.catch((error) => error.code));
    await stateOf(waiting[0]!);
    const closing = router.close({ graceMs: 100 });
    await clock.advance(200);
    await closing;
    expect(await Promise.all(waiting)).toEqual(["shutting_down", "shutting_down"]);
    expect(idle()).toBe(true);
    expect(clock.armed).toBe(0);
  });

  test("lets them go within its grace", async () => {
    const { clock, select, router } = await setUp({}, 1);
    const first = await select();
    const waiting = select();
    await stateOf(waiting);
    const closing = router.close({ graceMs: 60_000 });
    first.booking.free();
    (await waiting).booking.free();
    await clock.advance(50);
    await closing;
  });
});

describe("a modelled prefill", () => {
  test("frees the rank for others before its first token, as time goes on", async () => {
    const prefillLoadModel = ({ newTokens }: { newTokens: number }) => newTokens * 10;
    const { clock, select, router } = await setUp({ prefillLoadModel, config: { routerQueueThreshold: 0.1 } }, 1);
    await select();
    expect(router.loads()[0]!.activePrefillTokens).toBe(256);
    const second = select();
    await clock.advance(1000);
    expect(router.loads()[0]!.activePrefillTokens).toBe(156);
    expect(await stateOf(second)).toBe("waits");
    await clock.advance(600);
    expect(await stateOf(second)).toBe("selected");
  });

  test("that fails is said once, and counts whole", async () => {
    const warnings: string[] = [];
    const prefillLoadModel = () => -1;
    const { clock, select, router } = await setUp({
      prefillLoadModel,
      config: {},
      log: { ...log, warn: (message: string) => warnings.push(message) },
    });
    await select();
    await select();
    await clock.advance(10_000);
    expect(router.loads().map(({ activePrefillTokens }) => activePrefillTokens)).toEqual([256, 256]);
    expect(warnings.length).toBe(1);
  });
});

describe("leases (scheduling.md §1.6)", () => {
  test("C26, scenario 9: a stream that goes on for 20 minutes counts to its end; 10 silent minutes end it", async () => {
    const { clock, select, router } = await setUp({
      config: { routerTrackOutputBlocks: true, activeRequestExpirySecs: 300 },
    });
    const { booking, worker } = await select();
    booking.firstToken();
    const load = () => router.loads().find((row) => row.workerId === worker.workerId)!;
    for (let minute = 0; minute < 20; minute++) {
      await clock.advance(60_000);
      booking.tokens(64);
      expect(load()).toMatchObject({ activeRequests: 1, activeDecodeBlocks: 5 + minute });
    }
    await clock.advance(600_000);
    expect(load()).toMatchObject({ activeRequests: 0, activeDecodeBlocks: 0 });
    expect(router.stats().bookings).toMatchObject({ live: 0, expired: 1 });
    // A late verb of the old attempt does not touch a newer booking with its id.
    await select({ requestId: "r1" });
    booking.free();
    expect(router.stats().bookings.live).toBe(1);
  });

  test("what is renewed by hand lives on; a lease of 0 never ends", async () => {
    const kept = await setUp({ config: { activeRequestExpirySecs: 300 } });
    const { booking } = await kept.select();
    for (let i = 0; i < 5; i++) {
      await kept.clock.advance(200_000);
      booking.renew();
    }
    expect(kept.router.stats().bookings).toMatchObject({ live: 1, expired: 0 });
    const ever = await setUp({ config: { activeRequestExpirySecs: 0 } });
    await ever.select();
    await ever.clock.advance(1e9);
    expect(ever.router.stats().bookings.live).toBe(1);
  });
});

describe("session affinity (plugins.md §3.6)", () => {
  const config = { sessionAffinityTtlSecs: 60 };

  test("a session stays with the rank that answered it, until it is idle for its time", async () => {
    const { clock, select } = await setUp({ config }, 8);
    const first = await select({ sessionId: "s" });
    first.booking.complete();
    for (let turn = 0; turn < 10; turn++) {
      await clock.advance(59_000);
      const again = await select({ sessionId: "s" });
      expect(again.worker).toEqual(first.worker);
      again.booking.complete();
    }
    const held = await select({ sessionId: "s" });
    await clock.advance(200_000);
    expect((await select({ sessionId: "s", requestId: "beside" })).worker).toEqual(first.worker);
    held.booking.abort();
    const others = new Set<string>();
    for (let i = 0; i < 32; i++) others.add((await select({ sessionId: `t${i}` })).worker.workerId);
    expect(others.size).toBe(8);
  });

  test("a dispatch that fails leaves the session where it was, one that answers moves it", async () => {
    const { router, select } = await setUp({ config });
    const first = await select({ sessionId: "s" });
    first.booking.complete();
    router.setOverloaded([{ workerId: first.worker.workerId }]);
    const failed = await select({ sessionId: "s" });
    expect(failed.worker).not.toEqual(first.worker);
    failed.booking.abort(new Error("refused"));
    router.setOverloaded([]);
    expect((await select({ sessionId: "s" })).worker).toEqual(first.worker);
    router.setOverloaded([{ workerId: first.worker.workerId }]);
    const moved = await select({ sessionId: "s" });
    moved.booking.firstToken();
    router.setOverloaded([]);
    expect((await select({ sessionId: "s" })).worker).toEqual(moved.worker);
  });

  test("its last request ends it; so does the end of its worker", async () => {
    const { router, select } = await setUp({ config });
    const bound = async (sessionId: string) => router.probe({ tokens: tokens(99), sessionId }).candidates.length === 1;
    (await select({ sessionId: "s" })).booking.complete();
    expect(await bound("s")).toBe(true);
    (await select({ sessionContext: { sessionId: "s", sessionFinal: true } })).booking.complete();
    expect(await bound("s")).toBe(false);
    const { worker, booking } = await select({ sessionId: "t" });
    booking.complete();
    router.removeWorker(worker.workerId);
    router.addWorker({ workerId: worker.workerId });
    expect(await bound("t")).toBe(false);
  });

  test("softly it attracts and does not bind", async () => {
    const { router, select } = await setUp({ config: { ...config, sessionAffinitySoft: true } });
    const first = await select({ sessionId: "s" });
    first.booking.complete();
    const { selected, candidates } = router.probe({ tokens: tokens(5), sessionId: "s" });
    expect(candidates.length).toBe(2);
    expect(selected).toEqual(first.worker);
    for (let i = 0; i < 4; i++) await select({ pinnedWorker: first.worker });
    expect(router.probe({ tokens: tokens(5), sessionId: "s" }).selected).not.toEqual(first.worker);
  });
});

describe("the decision log", () => {
  test("keeps the last decisions, newest last, also those without a worker; off it keeps none", async () => {
    const { select, router, clock } = await setUp({ decisionLog: 3, config: {} });
    await select({ requestId: "a" });
    await select({ requestId: "b" });
    await clock.advance(5);
    await expect(select({ requestId: "c", pinnedWorker: { workerId: 9 } })).rejects.toThrow(coded("no_endpoints"));
    await select({ requestId: "d", explain: true });
    const decisions = router.decisions();
    expect(decisions.map(({ requestId, outcome, atMs }) => [requestId, outcome, atMs])).toEqual([
      ["b", "selected", 1000],
      ["c", "no_endpoints", 1005],
      ["d", "selected", 1005],
    ]);
    expect(decisions[2]!.selected).toMatchObject({ policyClass: "default", queueWaitMs: 0, evidence: "none" });
    expect(decisions[2]!.selected!.candidates!.length).toBe(2);
    expect(decisions[0]!.selected).not.toHaveProperty("candidates");
    expect(JSON.parse(JSON.stringify(decisions)).length).toBe(3);
    const off = await setUp();
    await off.select();
    expect(off.router.decisions()).toEqual([]);
  });

  test("cannot be changed by who reads it", async () => {
    const { select, router } = await setUp({ decisionLog: true, config: {} });
    await select();
    const [decision] = router.decisions();
    expect(() => Object.assign(decision!, { outcome: "x" })).toThrow(TypeError);
    expect(() => Object.assign(decision!.selected!, { evidence: "x" })).toThrow(TypeError);
  });

  test.each([-1, 1.5, "many"])("of %j entries is refused", async (decisionLog) => {
    await expect(setUp({ decisionLog: decisionLog as number })).rejects.toThrow(coded("invalid_config"));
  });
});

describe("a request that waits for a busy rank", () => {
  test("keeps that rank alone from those that come after it, whatever their caches say", async () => {
    const { router, select, pending } = await setUp({ blockSize: 16 });
    const prompt = tokens(7);
    const { blockHashes, sequenceHashes } = hashTokens(prompt, 16);
    router.storeBlocks({ workerId: "1", dpRank: 0 }, "device", null, sequenceHashes, blockHashes);
    const pin = (workerId: number) => ({ pinnedWorker: { workerId } });
    const first = await select(pin(1));
    let last = await select(pin(2));
    const pinned = select(pin(1));
    const others = Array.from({ length: 100 }, () => select({ tokens: prompt }));
    const places: string[] = [];
    for (const other of others) {
      last.booking.free();
      last = await other;
      places.push(last.worker.workerId);
      if (last.worker.workerId === "1") {
        last.booking.free();
        last = await select(pin(2));
      }
    }
    expect(places.slice(64)).toEqual(new Array(36).fill("2"));
    expect(await stateOf(pinned)).toBe("waits");
    first.booking.free();
    expect((await pinned).worker.workerId).toBe("1");
    expect(pending()).toBe(0);
  });

  test("waits on when all ranks are overloaded and busy, and fails when they are only overloaded", async () => {
    const { router, select } = await setUp({}, 1);
    const first = await select();
    const second = select();
    router.setOverloaded([{ workerId: 1 }]);
    expect(await stateOf(second)).toBe("waits");
    const third = select();
    expect(await stateOf(third)).toBe("waits");
    router.setOverloaded([]);
    first.booking.firstToken();
    (await second).booking.firstToken();
    (await third).booking.firstToken();
    router.setOverloaded([{ workerId: 1 }]);
    await expect(select()).rejects.toThrow(coded("all_eligible_workers_overloaded"));
  });
});

describe("overload (§3.3)", () => {
  test("scenario 13: 3 of 4 overloaded → always the 4th; 4 of 4 → the overload's error", async () => {
    const { router, select } = await setUp({ config: {} }, 4);
    router.setOverloaded([{ workerId: 1 }, { workerId: 2 }, { workerId: 4, dpRank: 0 }]);
    for (let i = 0; i < 20; i++) expect((await select()).worker.workerId).toBe("3");
    router.setOverloaded([1, 2, 3, 4].map((workerId) => ({ workerId })));
    await expect(select()).rejects.toThrow(coded("all_eligible_workers_overloaded"));
    await expect(select({ pinnedWorker: { workerId: 1 } })).rejects.toThrow(coded("pinned_worker_overloaded"));
    router.setOverloaded([]);
    router.setAvailable([]);
    await expect(select()).rejects.toThrow(coded("no_endpoints"));
    router.setAvailable([2]);
    expect((await select()).worker.workerId).toBe("2");
    router.setAvailable(null);
  });

  test("thresholds change at run time, and their end lets requests in again", async () => {
    const { router, select } = await setUp({ config: {} }, 1);
    const first = await select();
    expect(router.busyThresholds({ activePrefillTokensThreshold: 100 })).toEqual({ activePrefillTokensThreshold: 100 });
    await expect(select()).rejects.toThrow(coded("all_eligible_workers_overloaded"));
    first.booking.firstToken();
    await select();
    router.busyThresholds({});
    await select();
  });
});
