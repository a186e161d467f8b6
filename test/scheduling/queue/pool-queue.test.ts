import { describe, expect, test } from "vitest";
import { Random } from "../../../src/core/random.js";
import type { PolicyClass } from "../../../src/plugins/policy/contract.js";
import { Oracle, type Waiting } from "./oracle.js";
import { classOf, setUp } from "./set-up.js";

const one = classOf("one");
const turns = () => new Promise<void>((resolve) => setTimeout(resolve, 0));

describe("when a request waits (scheduling.md §5.1)", () => {
  test("scenario 14: at threshold 0 one idle rank admits; when all have a token it waits", () => {
    const { queue, pool, laneFor } = setUp(2, [one]);
    pool.tokens[0] = 1;
    expect(queue.mustWait(one, laneFor())).toBe(false);
    expect(queue.mustWait(one, laneFor([0]))).toBe(true);
    pool.tokens[1] = 1;
    expect(queue.mustWait(one, laneFor())).toBe(true);
  });

  test("scenario 14: a share of the engine's pass is compared strictly, and a whole one never waits", () => {
    const half = classOf("half", { prefillBusyThresholdFrac: 0.5 });
    const { prefillBusyThreshold: _, ...byShare } = half;
    const { queue, pool, laneFor } = setUp(1, [byShare]);
    pool.tokens[0] = 500;
    expect(queue.mustWait(byShare, laneFor())).toBe(false);
    pool.tokens[0] = 501;
    expect(queue.mustWait(byShare, laneFor())).toBe(true);
    pool.batch = 10_000_000;
    expect(queue.mustWait(byShare, laneFor())).toBe(false);
  });

  test("never without a threshold, nor where no rank may take it", () => {
    const { prefillBusyThreshold: _, ...free } = classOf("free");
    const { queue, pool, laneFor } = setUp(1, [one, free]);
    pool.tokens[0] = 5;
    expect(queue.mustWait(free, laneFor())).toBe(false);
    expect(pool.refreshed).toBe(0);
    expect(queue.mustWait(one, laneFor([]))).toBe(false);
  });

  test("C60: at the same load a batch class waits and an interactive one does not", () => {
    const batch = classOf("batch", { prefillBusyThreshold: 700 });
    const interactive = classOf("interactive", { prefillBusyThreshold: 1000 });
    const { queue, pool, laneFor } = setUp(1, [batch, interactive]);
    pool.tokens[0] = 800;
    expect([batch, interactive].map((c) => queue.mustWait(c, laneFor()))).toEqual([true, false]);
  });

  test("a newcomer does not pass those of its class that wait for one of its ranks", async () => {
    const { queue, pool, park, laneFor } = setUp(3, [one]);
    pool.tokens.fill(1);
    void park("a", { policyClass: one, slots: [0, 1] });
    pool.tokens.fill(0);
    expect(queue.mustWait(one, laneFor([1, 2]))).toBe(true);
    expect(queue.mustWait(one, laneFor([2]))).toBe(false);
  });
});

describe("the order within a class (§5.3)", () => {
  async function order(policyClass: PolicyClass, asks: Record<string, object>): Promise<string> {
    const { clock, pool, park, free, went } = setUp(1, [policyClass]);
    pool.tokens[0] = 1;
    for (const [name, ask] of Object.entries(asks)) {
      void park(name, { policyClass, ...ask });
      await clock.advance(1000);
    }
    for (const _ of went.length ? [] : Object.keys(asks)) await free(0);
    return went.join("");
  }

  test("fcfs: by arrival, a jump of x is x seconds earlier, and below 0 counts as 0", async () => {
    expect(await order(one, { a: {}, b: {}, c: {} })).toBe("abc");
    expect(await order(one, { a: {}, b: { jump: 0.9 }, c: { jump: 2.5 } })).toBe("cab");
    expect(await order(one, { a: { jump: -5 }, b: {} })).toBe("ab");
  });

  test("equal keys: first come, first served", async () => {
    expect(await order(one, { a: { ingress: 0 }, b: { ingress: 0 }, c: { ingress: 0 } })).toBe("abc");
  });

  test("lcfs: the latest first", async () => {
    expect(await order(classOf("l", { queuePolicy: "lcfs" }), { a: {}, b: {}, c: {} })).toBe("cba");
  });

  test("wspt: the cheapest first, by uncached tokens, and a jump weighs", async () => {
    const wspt = classOf("w", { queuePolicy: "wspt" });
    expect(await order(wspt, { a: { raw: 300 }, b: { raw: 100 }, c: { raw: 400, cached: 350 } })).toBe("cba");
    expect(await order(wspt, { a: { raw: 300, jump: 5 }, b: { raw: 100 } })).toBe("ab");
  });

  test("strict priority goes before the due time, and that before the score; without a due time last", async () => {
    expect(await order(one, { a: {}, b: { due: 9e9 }, c: { due: 8e9 }, d: { strict: 1 } })).toBe("dcba");
  });
});

describe("what waits in a lane of its own", () => {
  test("scenario 15: a head that may only go to a busy rank does not hold back others", async () => {
    const { pool, park, free, went } = setUp(2, [one]);
    pool.tokens.fill(1);
    void park("head", { policyClass: one, slots: [0] });
    void park("next", { policyClass: one });
    await free(1);
    expect(went).toEqual(["next"]);
    await free(0);
    expect(went).toEqual(["next", "head"]);
  });

  test("scenario 15: once 64 have passed it, its ranks are kept for it, and others go on elsewhere", async () => {
    const { pool, park, free, went, kept } = setUp(3, [one]);
    pool.tokens.fill(1);
    void park("head", { policyClass: one, slots: [0] });
    for (let i = 0; i < 100; i++) void park(`n${i}`, { policyClass: one });
    for (let i = 0; i < 100; i++) await free(1 + (i % 2));
    expect(went).toEqual(Array.from({ length: 100 }, (_, i) => `n${i}`));
    expect(kept.slice(0, 64)).toEqual(new Array(64).fill(undefined));
    expect(kept.slice(64)).toEqual(new Array(36).fill([0]));
    void park("same rank", { policyClass: one, slots: [0] });
    void park("late", { policyClass: one, slots: [0, 1] });
    await free(0);
    expect(went.slice(100)).toEqual(["head"]);
    expect(kept[100]).toBeUndefined();
    await free(1);
    expect(went.slice(101)).toEqual(["late"]);
  });

  test("a lane whose last rank has gone lets its requests go, so that they fail", async () => {
    const { pool, queue, park, went } = setUp(1, [one]);
    pool.tokens[0] = 1;
    const slots = [0];
    void park("a", { policyClass: one, slots });
    slots.length = 0;
    pool.topology++;
    queue.changed();
    await turns();
    expect(went).toEqual(["a"]);
  });
});

describe("C58: a lower strict tier", () => {
  test.each([
    [30_000, true],
    [0, false],
  ])("with a bound of %d ms progresses beside a saturated one: %s", async (maxWaitMs, progresses) => {
    const { clock, pool, park, free, went } = setUp(1, [one], maxWaitMs);
    pool.tokens[0] = 1;
    for (let i = 0; i < 40; i++) void park("low", { policyClass: one });
    for (let second = 0; second < 60; second++) {
      void park("high", { policyClass: one, strict: 1 });
      void park("high", { policyClass: one, strict: 1 });
      await clock.advance(1000);
      await free(0);
    }
    const low = went.filter((name) => name === "low").length;
    expect(went.length).toBe(60);
    // Every second turn from the thirtieth second on.
    if (progresses) expect(low).toBeGreaterThanOrEqual(15);
    else expect(low).toBe(0);
  });
});

describe("limits (§5.5)", () => {
  test.each([
    [{ requestQueueLimitPerWorker: 1 }, "requests", 2, 2],
    [{ rawIslTokenQueueLimitPerWorker: 8 }, "raw_isl_tokens", 20, 16],
    [{ cachedTokenQueueLimitPerWorker: 3 }, "cached_tokens", 8, 6],
  ])("%o", async (limit, limitKind, current, most) => {
    const limited = classOf("limited", limit);
    const { queue, pool, park } = setUp(2, [limited]);
    pool.tokens.fill(1);
    void park("a", { policyClass: limited, cached: 4 });
    void park("b", { policyClass: limited, cached: 4 });
    const error = await park("c", { policyClass: limited, cached: 4 });
    expect(error).toMatchObject({
      code: "queue_rejected",
      status: 429,
      details: { policyClass: "limited", limitKind, current, limit: most },
    });
    expect(queue.stats()).toMatchObject({ pending: 2, pendingIslTokens: 20, byClass: { limited: 2 }, rejected: 1 });
  });

  test("losing workers turns nobody out", async () => {
    const limited = classOf("limited", { requestQueueLimitPerWorker: 1 });
    const { queue, pool, park, failed } = setUp(2, [limited]);
    pool.tokens.fill(1);
    void park("a", { policyClass: limited });
    void park("b", { policyClass: limited });
    pool.workers = 1;
    pool.topology++;
    queue.changed();
    await turns();
    expect([queue.pending, failed]).toEqual([2, []]);
  });
});

describe("the end of a wait", () => {
  test("a due time ends it, on the request's own timer; past due it does not begin", async () => {
    const { clock, queue, pool, park, failed } = setUp(1, [one]);
    pool.tokens[0] = 1;
    void park("a", { policyClass: one, due: 500 });
    expect(clock.armed).toBe(1);
    await clock.advance(499);
    expect(failed).toEqual([]);
    await clock.advance(1);
    expect(failed).toEqual(["a: deadline_exceeded"]);
    await park("b", { policyClass: one, due: 500 });
    expect(queue.stats()).toMatchObject({ pending: 0, overdue: 2 });
    expect(clock.armed).toBe(0);
  });

  test("the caller ends it: before, while it waits, and as it goes", async () => {
    const { clock, queue, pool, park, free, went, failed } = setUp(1, [one]);
    pool.tokens[0] = 1;
    const gaveUp = () => new Error("gave up");
    await park("before", { policyClass: one }, undefined, AbortSignal.abort(gaveUp()));
    const controller = new AbortController();
    const waiting = park("waiting", { policyClass: one }, undefined, controller.signal);
    controller.abort(gaveUp());
    await waiting;
    const last = new AbortController();
    void park("going", { policyClass: one }, () => last.abort(gaveUp()), last.signal);
    await free(0);
    expect(failed).toEqual(["before: gave up", "waiting: gave up"]);
    expect(went).toEqual(["going"]);
    expect(queue.stats()).toMatchObject({ pending: 0, cancelled: 1 });
    expect(clock.armed).toBe(0);
  });

  test("what a request throws as it goes is its own", async () => {
    const { pool, park, free, went, failed } = setUp(1, [one]);
    pool.tokens[0] = 1;
    const fails = () => {
      throw new Error("no");
    };
    void park("a", { policyClass: one }, fails);
    void park("b", { policyClass: one });
    await free(0);
    expect([went, failed]).toEqual([["a", "b"], ["a: no"]]);
  });

  test("scheduling.md §5.7: close answers all that wait and all that come, and every figure is 0", async () => {
    const { clock, queue, pool, park, failed } = setUp(2, [one]);
    pool.tokens.fill(1);
    for (const name of ["a", "b", "c"]) void park(name, { policyClass: one, slots: name === "b" ? [1] : [0, 1] });
    queue.close(new Error("over"));
    await park("d", { policyClass: one });
    expect(failed.sort()).toEqual(["a: over", "b: over", "c: over", "d: over"]);
    expect(queue.stats()).toMatchObject({ pending: 0, pendingIslTokens: 0, byClass: {} });
    expect(clock.armed).toBe(0);
  });

  test("a pool that cannot say its loads any more answers all that wait", async () => {
    const { queue, pool, park, failed } = setUp(1, [one]);
    pool.tokens[0] = 1;
    void park("a", { policyClass: one });
    await turns();
    pool.refresh = () => {
      throw new Error("trapped");
    };
    queue.changed();
    await turns();
    expect([failed, queue.pending]).toEqual([["a: trapped"], 0]);
  });

  test("without a word from anybody, a waiting request looks again after a minute", async () => {
    const { clock, pool, park, went } = setUp(1, [one]);
    pool.tokens[0] = 1;
    void park("a", { policyClass: one });
    await turns();
    pool.tokens[0] = 0;
    await clock.advance(59_999);
    expect(went).toEqual([]);
    await clock.advance(1);
    expect(went).toEqual(["a"]);
    expect(clock.armed).toBe(0);
  });
});

describe("against the plain reading of the rules", () => {
  test.each([1n, 2n, 3n, 4n])("20,000 random operations, seed %d", async (seed) => {
    const random = new Random(seed);
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random.double() * list.length)]!;
    const classes = [
      classOf("a", { quantum: 30, prefillBusyThreshold: 20, requestQueueLimitPerWorker: 8 }),
      classOf("b", { quantum: 100, queuePolicy: "wspt", prefillBusyThreshold: 0 }),
      classOf("c", { quantum: 7, queuePolicy: "lcfs", prefillBusyThresholdFrac: 0.03 }),
    ];
    const maxWaitMs = seed % 2n ? 3000 : 0;
    const { clock, pool, queue, went, failed, park, laneFor } = setUp(4, classes, maxWaitMs);
    const loads = [0, 0, 0, 0];
    const oracle = new Oracle(classes, loads, pool.batch, maxWaitMs);
    const expected: string[] = [];
    const expectedFailed: string[] = [];
    const sets = [[0, 1, 2, 3], [0, 1, 2, 3], [0], [1, 2], [3], []];
    const controllers = new Map<number, AbortController>();
    const charge = ({ slots, raw }: Pick<Waiting, "slots" | "raw">): number | undefined => {
      if (slots.length === 0) return undefined;
      const slot = slots.reduce((best, other) => (loads[other]! < loads[best]! ? other : best));
      loads[slot]! += raw;
      return slot;
    };
    const simulate = () => {
      for (let w = oracle.pop(); w; w = oracle.pop()) {
        expected.push(String(w.id));
        charge(w);
      }
    };
    const fail = (w: Waiting, why: string) => {
      expectedFailed.push(`${w.id}: ${why}`);
      oracle.waiting = oracle.waiting.filter((other) => other !== w);
    };
    let id = 0;
    for (let operation = 0; operation < 20_000; operation++) {
      const dice = random.double();
      if (dice < 0.45) {
        const policyClass = pick(classes);
        const slots = pick(sets);
        const must = oracle.mustWait(policyClass, slots);
        expect(queue.mustWait(policyClass, laneFor(slots))).toBe(must);
        const raw = 1 + Math.floor(random.double() * 40);
        if (!must) {
          const slot = charge({ slots, raw });
          if (slot !== undefined) pool.tokens[slot] = loads[slot]!;
          continue;
        }
        const cached = Math.floor(random.double() * raw);
        const strict = random.double() < 0.2 ? 1 : 0;
        const jump = random.double() < 0.2 ? random.double() * 4 - 1 : 0;
        const ingress = clock.now() - Math.floor(random.double() * 500);
        const due = random.double() < 0.2 ? clock.now() + Math.floor(random.double() * 4000) : undefined;
        const w: Waiting = {
          ...{ id: id++, policyClass, slots, strict, jump, ingressMs: ingress, sinceMs: clock.now(), due, raw, cached },
          cost: Math.max(1, raw - cached),
          bypassed: 0,
        };
        const limit = policyClass.requestQueueLimitPerWorker;
        const size = oracle.waiting.filter((o) => o.policyClass === policyClass).length;
        if (due !== undefined && due <= clock.now()) expectedFailed.push(`${w.id}: deadline_exceeded`);
        else if (limit !== undefined && size >= limit * 4) expectedFailed.push(`${w.id}: queue_rejected`);
        else oracle.waiting.push(w);
        const controller = new AbortController();
        controllers.set(w.id, controller);
        void park(
          String(w.id),
          { policyClass, slots, strict, jump, ingress, raw, cached, ...(due !== undefined && { due }) },
          undefined,
          controller.signal,
        );
      } else if (dice < 0.85) {
        const slot = Math.floor(random.double() * 4);
        const to = random.double() < 0.3 ? loads[slot]! / 2 : 0;
        loads[slot] = to;
        pool.tokens[slot] = to;
        queue.changed(slot);
      } else if (dice < 0.9 && oracle.waiting.length > 0) {
        const w = pick(oracle.waiting);
        fail(w, "stop");
        controllers.get(w.id)!.abort(new Error("stop"));
      } else if (dice < 0.92) {
        const ms = Math.floor(random.double() * 800);
        const due = oracle.waiting.filter((w) => w.due !== undefined && w.due <= clock.now() + ms);
        // One after the other, as their timers do it.
        for (const w of due.sort((a, b) => a.due! - b.due! || a.id - b.id)) {
          if (!oracle.waiting.includes(w)) continue;
          oracle.nowMs = w.due!;
          fail(w, "deadline_exceeded");
          simulate();
        }
        await clock.advance(ms);
        oracle.nowMs = clock.now();
      }
      await Promise.resolve();
      await Promise.resolve();
      simulate();
      expect(queue.pending).toBe(oracle.waiting.length);
    }
    await turns();
    for (const { id } of oracle.late) expectedFailed.push(`${id}: deadline_exceeded`);
    expect(went).toEqual(expected);
    expect(failed.sort()).toEqual(expectedFailed.sort());
    expect(pool.tokens).toEqual(loads);
    const stats = queue.stats();
    expect(stats.pendingIslTokens).toBe(oracle.waiting.reduce((sum, { raw }) => sum + raw, 0));
    expect(Object.values(stats.byClass).reduce((a, b) => a + b, 0)).toBe(oracle.waiting.length);
    queue.close(new Error("over"));
    expect([queue.stats().pending, queue.stats().pendingIslTokens, clock.armed]).toEqual([0, 0, 0]);
    expect(went.length).toBeGreaterThan(1000);
  });
});
