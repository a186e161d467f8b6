// Delivery of events: order, one at a time, failures, and the reuse of an id.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ClassifyEvent, RequestClassifier } from "../../../src/plugins/request-classifier/contract.js";
import { Deferred, forbidUnhandledRejections, makeInput, makeRunner, names, settle, sleep, W1 } from "./harness.js";

forbidUnhandledRejections();

/** A plugin whose callbacks end when the test says so, in `done`, and that keeps what it was called with in `trace`. */
function slow(parts: RequestClassifier = {}) {
  const trace: string[] = [];
  const done: Deferred<void>[] = [];
  const plugin: RequestClassifier = {
    classify(request) {
      trace.push(`classify ${request.requestId}`);
      return request;
    },
    onEvent(event) {
      trace.push(`${event.type} ${event.requestId}`);
      const end = new Deferred<void>();
      done.push(end);
      return end.promise;
    },
    ...parts,
  };
  return { plugin, trace, done };
}

test("events come in the order in which they happened, over all requests", async () => {
  const events: ClassifyEvent[] = [];
  const runner = makeRunner({ onEvent: (event) => void events.push(event) });
  const [a, b] = [runner.begin("a", 1), runner.begin("b", 1)];
  a.sent(W1);
  b.sent(W1);
  b.responding(W1);
  b.completed();
  await Promise.resolve();
  a.aborted();
  await Promise.resolve();
  expect(names(events)).toEqual(["sent a", "sent b", "responding b", "completed b", "aborted a"]);
});

describe("an async callback", () => {
  test("holds up the next event until it ends, however it ends", async () => {
    const { plugin, trace, done } = slow();
    const runner = makeRunner(plugin);
    const lifecycle = runner.begin("a", 1);
    lifecycle.sent(W1);
    lifecycle.responding(W1);
    lifecycle.completed();
    await settle();
    expect(trace).toEqual(["sent a"]);
    expect(runner.stats().events.queued).toBe(2);
    done[0]!.resolve();
    await settle();
    expect(trace).toEqual(["sent a", "responding a"]);
    done[1]!.reject("no Error");
    await settle();
    expect(trace).toEqual(["sent a", "responding a", "completed a"]);
    done[2]!.resolve();
    await settle();
    expect(runner.stats().events).toEqual({ queued: 0, delivered: 2, failed: 1, abandoned: 0, dropped: 0 });
    expect(runner.log.lines).toEqual([
      { level: "error", message: "the request classifier threw on an event", fields: { cause: "no Error" } },
    ]);
  });

  test("holds up new classifications, which then go before the next event", async () => {
    const { plugin, trace, done } = slow();
    const runner = makeRunner(plugin);
    const first = runner.begin("a", 1);
    first.sent(W1);
    first.completed();
    await settle();
    const waiting = ["b", "c"].map((id) => runner.classify(runner.begin(id, 1), makeInput()));
    expect(waiting.every((answer) => answer instanceof Promise)).toBe(true);
    await settle();
    expect(trace).toEqual(["sent a"]);
    expect(runner.stats()).toMatchObject({ pending: 2, classified: 0 });
    done[0]!.resolve();
    expect(await Promise.all(waiting)).toEqual([{}, {}]);
    await settle();
    expect(trace).toEqual(["sent a", "classify b", "classify c", "completed a"]);
    expect(runner.stats()).toMatchObject({ pending: 0, classified: 2 });
    done[1]!.resolve();
  });

  test("a stream of them does not starve a classification", async () => {
    let ends = 0;
    const runner = makeRunner({ classify: (request) => request, onEvent: async () => void ends++ });
    for (let i = 0; i < 1000; i++) runner.begin(`e${i}`, 1).aborted();
    await Promise.resolve();
    const answer = runner.classify(runner.begin("r", 1), makeInput());
    expect(answer).toBeInstanceOf(Promise);
    await answer;
    expect(ends).toBeLessThan(10);
    await settle();
    expect(ends).toBe(1000);
  });

  test("a queue that never runs empty loses nothing and keeps its order", async () => {
    const { plugin, trace, done } = slow();
    const runner = makeRunner(plugin);
    const expected: string[] = [];
    for (let i = 0; i < 300; i++) {
      for (const id of [`x${i}`, `y${i}`]) {
        if (i >= 200 && id[0] === "y") continue;
        runner.begin(id, 1).aborted();
        expected.push(`aborted ${id}`);
      }
      await settle();
      done[i]!.resolve();
    }
    await settle();
    expect(trace).toEqual(expected.slice(0, 301));
    expect(runner.stats().events.queued).toBe(500 - 301);
  });

  test("a pending classification holds up no event", async () => {
    const { plugin, trace, done } = slow({ classify: (request) => sleep(30).then(() => request) });
    const runner = makeRunner(plugin);
    const answer = runner.classify(runner.begin("b", 1), makeInput());
    runner.begin("a", 1).aborted();
    await settle();
    expect(trace).toEqual(["aborted a"]);
    done[0]!.resolve();
    expect(await answer).toEqual({});
  });
});

test("a callback that throws stops neither the events nor the classifications", async () => {
  const seen: string[] = [];
  const runner = makeRunner({
    classify: (request) => request,
    onEvent(event) {
      seen.push(`${event.type} ${event.requestId}`);
      throw seen.length % 2 ? new Error("no") : undefined;
    },
  });
  const lifecycle = runner.begin("a", 1);
  lifecycle.sent(W1);
  lifecycle.completed();
  // The terminal event counts as told although its callback throws.
  expect(runner.classify(runner.begin("a", 1), makeInput())).toEqual({});
  expect(seen).toEqual(["sent a", "completed a"]);
  expect(runner.stats().events).toMatchObject({ queued: 0, delivered: 0, failed: 2 });
});

describe("a callback that never ends", () => {
  const endless: RequestClassifier = { classify: (request) => request, onEvent: () => new Promise(() => {}) };
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] }));
  afterEach(() => void vi.useRealTimers());

  test("is left alone after classifyTimeoutMs, and counted", async () => {
    const runner = makeRunner(endless, { classifyTimeoutMs: 30 });
    const lifecycle = runner.begin("a", 1);
    lifecycle.sent(W1);
    await vi.advanceTimersByTimeAsync(29);
    expect(runner.stats().events.abandoned).toBe(0);
    const answer = runner.classify(runner.begin("b", 1), makeInput());
    await vi.advanceTimersByTimeAsync(1);
    expect(await answer).toEqual({});
    lifecycle.aborted();
    await vi.advanceTimersByTimeAsync(30);
    expect(runner.stats()).toMatchObject({ timedOut: 0, events: { queued: 0, abandoned: 2, delivered: 0 } });
    expect(runner.log.lines.map(({ level }) => level)).toEqual(["warn", "warn"]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("is left alone by those that wait, where its own timer died", async () => {
    const runner = makeRunner(endless, { classifyTimeoutMs: 1000 });
    runner.begin("a", 1).aborted();
    await Promise.resolve();
    vi.clearAllTimers();
    runner.clock.time += 500;
    const answer = runner.classify(runner.begin("b", 1), makeInput());
    await vi.advanceTimersByTimeAsync(400);
    expect(runner.stats()).toMatchObject({ pending: 1, events: { abandoned: 0 } });
    runner.clock.time += 500;
    await vi.advanceTimersByTimeAsync(100);
    expect(await answer).toEqual({});
    expect(runner.stats()).toMatchObject({ pending: 0, events: { abandoned: 1 } });
  });

  test("that ends after it was left alone changes nothing", async () => {
    const { plugin, trace, done } = slow();
    const runner = makeRunner(plugin, { classifyTimeoutMs: 20 });
    for (const id of ["a", "b", "c"]) runner.begin(id, 1).aborted();
    await vi.advanceTimersByTimeAsync(30);
    expect(trace).toEqual(["aborted a", "aborted b"]);
    done[0]!.reject(new Error("late"));
    await settle();
    expect(trace).toEqual(["aborted a", "aborted b"]);
    done[1]!.resolve();
    await settle();
    done[2]!.resolve();
    await settle();
    expect(trace).toEqual(["aborted a", "aborted b", "aborted c"]);
    expect(runner.stats().events).toEqual({ queued: 0, delivered: 2, failed: 0, abandoned: 1, dropped: 0 });
  });

  test("is released by the close, which drops and counts what is behind it", async () => {
    let closes = 0;
    const runner = makeRunner({ ...endless, close: () => void closes++ });
    const lifecycle = runner.begin("a", 1);
    lifecycle.sent(W1);
    lifecycle.completed();
    runner.begin("b", 1).aborted();
    await settle();
    await runner.close();
    await runner.close();
    expect(closes).toBe(1);
    expect(runner.stats().events).toEqual({ queued: 0, delivered: 0, failed: 0, abandoned: 1, dropped: 2 });
  });
});

describe("an id that is used again", () => {
  test("is classified at once when the plugin takes the end of the first at once", () => {
    const seen: string[] = [];
    const runner = makeRunner({
      classify(request) {
        seen.push(`classify ${request.requestId}`);
        return request;
      },
      onEvent: (event) => void seen.push(`${event.type} ${event.requestId}`),
    });
    for (let i = 0; i < 3; i++) {
      const lifecycle = runner.begin("a", 1);
      expect(runner.classify(lifecycle, makeInput())).toEqual({});
      lifecycle.selected(W1);
      lifecycle.completed();
    }
    expect(seen).toEqual(["classify a", "completed a", "classify a", "completed a", "classify a"]);
  });

  test("waits for the end of all that had it before; other ids do not", async () => {
    const { plugin, trace, done } = slow();
    const runner = makeRunner(plugin);
    runner.begin("x", 1).aborted();
    await settle();
    runner.begin("a", 1).aborted();
    runner.begin("a", 1).aborted();
    const third = runner.classify(runner.begin("a", 1), makeInput());
    const other = runner.classify(runner.begin("b", 1), makeInput());
    done[0]!.resolve();
    expect(await other).toEqual({});
    for (const end of [1, 2]) {
      await settle();
      expect(trace).not.toContain("classify a");
      done[end]!.resolve();
    }
    expect(await third).toEqual({});
    expect(trace).toEqual(["aborted x", "classify b", "aborted a", "aborted a", "classify a"]);
  });

  test("a thousand reuses keep nothing alive", async () => {
    const runner = makeRunner({ classify: (request) => request, onEvent: async () => {} });
    for (let i = 0; i < 1000; i++) {
      const lifecycle = runner.begin("a", 1);
      await runner.classify(lifecycle, makeInput());
      lifecycle.aborted();
    }
    await settle();
    expect(runner.stats()).toMatchObject({
      live: 0,
      pending: 0,
      classified: 1000,
      events: { queued: 0, delivered: 1000 },
    });
  });
});

test("a plugin without onEvent gets none, and nothing is kept for it", async () => {
  const runner = makeRunner({ classify: (request) => request });
  for (let i = 0; i < 3; i++) {
    const lifecycle = runner.begin("a", 1);
    expect(runner.classify(lifecycle, makeInput())).toEqual({});
    lifecycle.sent(W1);
    lifecycle.completed();
  }
  expect(runner.stats()).toMatchObject({ live: 0, events: { queued: 0, delivered: 0, dropped: 0 } });
});
