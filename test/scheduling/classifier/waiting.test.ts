// Classifications that wait, and every way in which the wait can end.
import { describe, expect, test, vi } from "vitest";
import type { ClassifyRequest, RequestClassifier } from "../../../src/plugins/request-classifier/contract.js";
import {
  codeOf,
  Deferred,
  deferring,
  forbidUnhandledRejections,
  makeInput,
  makeRunner,
  names,
  recording,
  settle,
  sleep,
  W1,
} from "./harness.js";

forbidUnhandledRejections();

test("a plugin that answers at once makes no promise", () => {
  const runner = makeRunner({ classify: (request) => request.setPolicyClass("vip") });
  expect(runner.classify(runner.begin("a", 1), makeInput())).toEqual({ policyClass: "vip" });
});

test("a router whose plugin does not classify changes nothing", () => {
  const runner = makeRunner({ onEvent() {} });
  expect(runner.classify(runner.begin("a", 1), makeInput())).toEqual({});
  expect(runner.stats().classified).toBe(0);
});

test("methods are called on the plugin", async () => {
  class Plugin implements RequestClassifier {
    #calls: string[] = [];
    classify(request: ClassifyRequest) {
      this.#calls.push("classify");
      return request;
    }
    onEvent() {
      this.#calls.push("onEvent");
    }
    close() {
      this.#calls.push("close");
    }
    get calls() {
      return this.#calls;
    }
  }
  const plugin = new Plugin();
  const runner = makeRunner(plugin);
  const lifecycle = runner.begin("a", 1);
  runner.classify(lifecycle, makeInput());
  lifecycle.aborted();
  await settle();
  await runner.close();
  expect(plugin.calls).toEqual(["classify", "onEvent", "close"]);
});

describe("once in a lifecycle", () => {
  test.each([
    ["at once", (request: ClassifyRequest) => request],
    ["later", async (request: ClassifyRequest) => request],
  ])("the answer, given %s, is replayed for a retry with its new prompt", async (_, answer) => {
    const plugin = recording({
      classify: (request) => answer(request.setPolicyClass("vip").setSchedulingCostTokens(7)),
    });
    const runner = makeRunner(plugin);
    const lifecycle = runner.begin("a", 100);
    const first = await runner.classify(lifecycle, makeInput());
    lifecycle.sent(W1);
    lifecycle.retry();
    const again = runner.classify(lifecycle, makeInput({ inputTokens: 140 }));
    expect(again).toBe(first);
    expect(first).toEqual({ policyClass: "vip", schedulingCostTokens: 7 });
    expect(runner.stats().classified).toBe(1);
    expect(lifecycle.contextTokens).toBe(140);
    await settle();
    expect(names(plugin.events)).toEqual(["sent a"]);
  });

  test("a new request of the same id is asked about anew", () => {
    const runner = makeRunner({ classify: (request) => request });
    for (let i = 0; i < 2; i++) {
      const lifecycle = runner.begin("a", 1);
      runner.classify(lifecycle, makeInput());
      lifecycle.aborted();
    }
    expect(runner.stats().classified).toBe(2);
  });
});

describe("a plugin that fails", () => {
  const ways: [name: string, fail: (cause: unknown) => never | Promise<never>][] = [
    [
      "throws",
      (cause) => {
        throw cause;
      },
    ],
    ["rejects", (cause) => Promise.reject(cause)],
    ["rejects later", (cause) => sleep(1).then(() => Promise.reject(cause))],
  ];
  const causes: [name: string, cause: unknown][] = [
    ["an error", new Error("secret")],
    ["a text", "secret"],
    ["null", null],
    ["an error with a code", Object.assign(new Error("secret"), { code: "no_endpoints", status: 418 })],
  ];
  const rows = ways.flatMap(([how, fail]) => causes.map(([what, cause]) => [how, what, fail, cause] as const));
  test.each(rows)("%s %s: only that request fails, with a constant message", async (_how, _what, fail, cause) => {
    let calls = 0;
    const plugin = recording({ classify: (request) => (calls++ === 0 ? fail(cause) : request) });
    const runner = makeRunner(plugin);
    const other = runner.begin("other", 1);
    const first = runner.begin("a", 1);
    await expect((async () => runner.classify(first, makeInput()))()).rejects.toMatchObject({
      code: "request_classifier_failed",
      status: 500,
      message: "the request classifier failed",
      details: {},
      cause,
    });
    expect(runner.classify(other, makeInput())).toEqual({});
    await settle();
    expect(plugin.events).toEqual([
      { type: "aborted", requestId: "a", error: expect.objectContaining({ code: "request_classifier_failed", cause }) },
    ]);
    expect(runner.stats()).toMatchObject({ live: 1, pending: 0, failed: 1, classified: 2 });
    expect(runner.log.lines).toEqual([
      {
        level: "error",
        message: "the request classifier failed",
        fields: { code: "request_classifier_failed", cause },
      },
    ]);
    // The id is free again.
    expect(await runner.classify(runner.begin("a", 1), makeInput())).toEqual({});
  });

  test("an answer that throws when it is looked at", async () => {
    const throwing = () => {
      throw new Error("do not look");
    };
    const answers = [
      new Proxy({}, { get: throwing }),
      Object.defineProperty(Promise.resolve(), "constructor", { get: throwing }),
    ];
    for (const answer of answers) {
      const runner = makeRunner({ classify: () => answer as never });
      const code = await codeOf(() => runner.classify(runner.begin("a", 1), makeInput()));
      expect(code).toBe("request_classifier_failed");
    }
  });
});

/** A classification that waits for the plugin, or for its turn behind an event that does not end. */
const places: [name: string, begin: (options?: object) => Waiting][] = [
  [
    "for the plugin",
    (options) => {
      const { calls, classify } = deferring();
      const plugin = recording({ classify });
      const runner = makeRunner(plugin, options);
      return { runner, calls, events: plugin.events, ready: Promise.resolve() };
    },
  ],
  [
    "for its turn",
    (options) => {
      const { calls, classify } = deferring();
      const events: { type: string; requestId: string }[] = [];
      const held = new Deferred<void>();
      const runner = makeRunner(
        {
          classify,
          onEvent(event) {
            if (event.requestId === "blocker") return held.promise;
            events.push(event);
          },
        },
        options,
      );
      runner.begin("blocker", 1).aborted();
      return { runner, calls, events, held, ready: settle() };
    },
  ],
];
interface Waiting {
  runner: ReturnType<typeof makeRunner>;
  calls: ReturnType<typeof deferring>["calls"];
  events: readonly unknown[];
  held?: Deferred<void>;
  ready: Promise<void>;
}

describe.each(places)("a request that waits %s", (place, begin) => {
  const asked = place === "for the plugin" ? 1 : 0;
  const finish = async ({ held, calls }: Waiting) => {
    held?.resolve();
    await settle();
    // What the plugin says now comes too late.
    for (const { answer } of calls) answer.reject(new Error("too late"));
    await settle();
  };

  test("ends when its caller gives up: aborted, without error or worker", async () => {
    const waiting = begin();
    const { runner, calls, events } = waiting;
    await waiting.ready;
    const caller = new AbortController();
    const lifecycle = runner.begin("a", 1);
    const answer = runner.classify(lifecycle, makeInput(), caller.signal) as Promise<unknown>;
    const reason = new Error("gone");
    caller.abort(reason);
    expect(lifecycle.live).toBe(false);
    await expect(answer).rejects.toBe(reason);
    expect(runner.stats()).toMatchObject({ live: 0, pending: 0, failed: 0 });
    expect(calls.map(({ signal }) => signal.reason)).toEqual(Array(asked).fill(reason));
    await finish(waiting);
    expect(calls.length).toBe(asked);
    expect(events).toStrictEqual([{ type: "aborted", requestId: "a" }]);
    expect(runner.log.lines).toEqual([]);
  });

  test("ends after classifyTimeoutMs", async () => {
    const waiting = begin({ classifyTimeoutMs: 20 });
    const { runner, calls } = waiting;
    const lifecycle = runner.begin("a", 1);
    const answer = runner.classify(lifecycle, makeInput());
    await expect(answer).rejects.toMatchObject({ code: "classify_timeout", status: 429 });
    expect(lifecycle.live).toBe(false);
    expect(runner.stats()).toMatchObject({ live: 0, pending: 0, timedOut: 1, failed: 0 });
    for (const { signal } of calls) expect(signal.reason).toMatchObject({ code: "classify_timeout" });
    await finish(waiting);
  });

  test("ends at the close, which reaches its signal", async () => {
    const waiting = begin();
    const { runner, calls } = waiting;
    await waiting.ready;
    const answer = runner.classify(runner.begin("a", 1), makeInput()) as Promise<unknown>;
    const closed = runner.close();
    await expect(answer).rejects.toMatchObject({ code: "shutting_down", status: 503 });
    await closed;
    expect(calls.map(({ signal }) => signal.aborted)).toEqual(Array(asked).fill(true));
    await finish(waiting);
    expect(calls.length).toBe(asked);
    expect(runner.stats()).toMatchObject({ live: 0, pending: 0 });
  });

  test("ends when its lifecycle ends", async () => {
    const waiting = begin();
    const { runner, calls } = waiting;
    await waiting.ready;
    const lifecycle = runner.begin("a", 1);
    const answer = runner.classify(lifecycle, makeInput()) as Promise<unknown>;
    lifecycle.aborted();
    await expect(answer).rejects.toMatchObject({ code: "lifecycle_ended", status: 409 });
    await finish(waiting);
    expect(calls.length).toBe(asked);
  });

  test("counts against maxPending", async () => {
    const waiting = begin({ maxPending: 2 });
    const { runner, calls, held, events } = waiting;
    await waiting.ready;
    const answers = ["a", "b"].map((id) => runner.classify(runner.begin(id, 1), makeInput()));
    expect(() => runner.classify(runner.begin("c", 1), makeInput())).toThrow(
      expect.objectContaining({ code: "classify_pending_limit", status: 429 }),
    );
    expect(runner.stats()).toMatchObject({ live: 2, pending: 2, turnedAway: 1, failed: 0 });
    held?.resolve();
    await settle();
    for (const { request, answer } of calls) answer.resolve(request);
    await Promise.all(answers);
    expect(calls.length).toBe(2);
    expect(events).toEqual([{ type: "aborted", requestId: "c", error: expect.anything() }]);
    const last = runner.classify(runner.begin("c", 1), makeInput());
    await settle();
    calls[2]!.answer.resolve(calls[2]!.request);
    expect(await last).toEqual({});
  });

  test("keeps a timer of its own while it waits, and none afterwards", async () => {
    const waiting = begin();
    const { runner } = waiting;
    await waiting.ready;
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
    try {
      const caller = new AbortController();
      const answer = runner.classify(runner.begin("a", 1), makeInput(), caller.signal) as Promise<unknown>;
      expect(vi.getTimerCount()).toBe(1);
      caller.abort();
      await answer.catch(() => {});
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
    await finish(waiting);
  });
});

describe("a caller who gives up while the answer is on its way", () => {
  const moments = Array.from({ length: 8 }, (_, ticks) => ticks);
  const reason = new Error("gone");

  test.each(moments)("%d microtasks after the plugin's", async (ticks) => {
    const { calls, classify } = deferring();
    const runner = makeRunner({ classify });
    const lifecycle = runner.begin("a", 1);
    const caller = new AbortController();
    const answer = (runner.classify(lifecycle, makeInput(), caller.signal) as Promise<unknown>).catch((error) => error);
    calls[0]!.answer.resolve(calls[0]!.request);
    for (let i = 0; i < ticks; i++) await Promise.resolve();
    caller.abort(reason);
    // Either it was too late, or the caller's reason is what comes out.
    expect(await answer).toEqual(lifecycle.live ? {} : reason);
    expect(runner.stats().live).toBe(lifecycle.live ? 1 : 0);
  });

  test.each(moments)("%d microtasks after its turn came: then the plugin is not called", async (ticks) => {
    const held = new Deferred<void>();
    let calls = 0;
    const runner = makeRunner({
      classify(request) {
        calls++;
        return request;
      },
      onEvent: (event) => (event.requestId === "blocker" ? held.promise : undefined),
    });
    runner.begin("blocker", 1).aborted();
    await settle();
    const lifecycle = runner.begin("a", 1);
    const caller = new AbortController();
    const answer = (runner.classify(lifecycle, makeInput(), caller.signal) as Promise<unknown>).catch((error) => error);
    held.resolve();
    for (let i = 0; i < ticks; i++) await Promise.resolve();
    const before = calls;
    caller.abort(reason);
    const result = await answer;
    expect(calls).toBe(before);
    expect(result).toEqual(lifecycle.live ? {} : reason);
  });

  test("after it has come, the request goes on", async () => {
    const runner = makeRunner({ classify: async (request) => request });
    const lifecycle = runner.begin("a", 1);
    const caller = new AbortController();
    await runner.classify(lifecycle, makeInput(), caller.signal);
    caller.abort(reason);
    expect(lifecycle.live).toBe(true);
  });
});

test("a signal that is aborted already is not worth a call", async () => {
  const plugin = recording({ classify: (request) => request });
  const runner = makeRunner(plugin);
  const lifecycle = runner.begin("a", 1);
  expect(() => runner.classify(lifecycle, makeInput(), AbortSignal.abort("gone"))).toThrow("gone");
  expect(runner.stats().classified).toBe(0);
  await settle();
  expect(plugin.events).toStrictEqual([{ type: "aborted", requestId: "a" }]);
});

describe("what a plugin does to its own request while it is called", () => {
  type Before = (router: { runner: ReturnType<typeof makeRunner>; caller: AbortController }) => void;
  const rows: [name: string, before: Before, code: string | undefined][] = [
    ["its caller gives up", ({ caller }) => caller.abort(Object.assign(new Error(), { code: "gone" })), "gone"],
    ["the router closes", ({ runner }) => void runner.close(), "lifecycle_ended"],
  ];
  test.each(rows)("%s, and it never answers", async (_, before, code) => {
    const caller = new AbortController();
    const runner = makeRunner({
      classify(_request, signal) {
        before({ runner, caller });
        expect(signal.aborted).toBe(false);
        return new Promise(() => {});
      },
    });
    expect(await codeOf(() => runner.classify(runner.begin("a", 1), makeInput(), caller.signal))).toBe(code);
    expect(runner.stats()).toMatchObject({ live: 0, pending: 0 });
  });

  test("it starts another classification: that one waits until it has returned", async () => {
    const trace: string[] = [];
    let inner: unknown;
    const runner = makeRunner({
      classify(request) {
        trace.push(`in ${request.requestId}`);
        if (request.requestId === "a") inner = runner.classify(runner.begin("b", 1), makeInput());
        trace.push(`out ${request.requestId}`);
        return request;
      },
    });
    expect(runner.classify(runner.begin("a", 1), makeInput())).toEqual({});
    expect(await inner).toEqual({});
    expect(trace).toEqual(["in a", "out a", "in b", "out b"]);
  });

  test("so does one that starts in a callback", async () => {
    const trace: string[] = [];
    let inner: unknown;
    const runner = makeRunner({
      classify(request) {
        trace.push(`classify ${request.requestId}`);
        return request;
      },
      onEvent() {
        inner = runner.classify(runner.begin("b", 1), makeInput());
        trace.push("out of the callback");
      },
    });
    runner.begin("a", 1).aborted();
    await settle();
    expect(await inner).toEqual({});
    expect(trace).toEqual(["out of the callback", "classify b"]);
  });
});

describe("what a plugin's listener throws when its request is given up is logged", () => {
  const no = new Error("no");
  const throws = () => {
    throw no;
  };
  const rejects = async () => Promise.reject(no);
  const rows: [name: string, listen: (signal: AbortSignal, listener: () => void) => void][] = [
    ["a function", (signal, listener) => signal.addEventListener("abort", listener)],
    ["one for once", (signal, listener) => signal.addEventListener("abort", listener, { once: true })],
    ["an object", (signal, listener) => signal.addEventListener("abort", { handleEvent: listener })],
    [
      "onabort",
      (signal, listener) => {
        signal.onabort = () => expect.fail("was replaced");
        signal.onabort = listener;
        expect(signal.onabort).toBe(listener);
      },
    ],
  ];
  test.each(
    rows.flatMap(([name, listen]) => [
      [`${name} that throws`, listen, throws] as const,
      [`${name} that rejects`, listen, rejects] as const,
    ]),
  )("%s", async (_, listen, listener) => {
    const uncaught: unknown[] = [];
    const keep = (error: unknown) => void uncaught.push(error);
    process.on("uncaughtException", keep);
    try {
      const runner = makeRunner({
        classify(_request, signal) {
          listen(signal, listener);
          return new Promise(() => {});
        },
      });
      const lifecycle = runner.begin("a", 1);
      const answer = runner.classify(lifecycle, makeInput()) as Promise<unknown>;
      lifecycle.aborted();
      await expect(answer).rejects.toMatchObject({ code: "lifecycle_ended" });
      await settle();
      await sleep(5);
      expect(uncaught).toEqual([]);
      expect(runner.log.lines).toEqual([
        {
          level: "error",
          message: "the request classifier threw when its request was given up",
          fields: { cause: no },
        },
      ]);
    } finally {
      process.off("uncaughtException", keep);
    }
  });

  test("and a signal is otherwise what the platform makes of it", async () => {
    const calls: string[] = [];
    const runner = makeRunner({
      classify(_request, signal) {
        const gone = () => void calls.push("gone");
        signal.addEventListener("abort", gone);
        signal.removeEventListener("abort", gone);
        signal.addEventListener("abort", (event) => void calls.push(`${event.type} ${event.target === signal}`));
        AbortSignal.any([signal]).addEventListener("abort", () => void calls.push("any"));
        expect(signal).toBeInstanceOf(AbortSignal);
        return new Promise(() => {});
      },
    });
    const lifecycle = runner.begin("a", 1);
    const answer = runner.classify(lifecycle, makeInput()) as Promise<unknown>;
    lifecycle.aborted();
    await answer.catch(() => {});
    expect(calls.sort()).toEqual(["abort true", "any"]);
  });
});

test("a plugin gets a signal unless it declares the request only", () => {
  const plugins: [classify: NonNullable<RequestClassifier["classify"]>, given: boolean][] = [
    [(request) => request, false],
    [(request, signal) => request.setSchedulingCostTokens(signal instanceof AbortSignal ? 2 : 1), true],
    [(...all) => all[0].setSchedulingCostTokens(all[1] instanceof AbortSignal ? 2 : 1), true],
  ];
  for (const [classify, given] of plugins) {
    const runner = makeRunner({ classify });
    const overrides = runner.classify(runner.begin("a", 1), makeInput());
    expect(overrides).toEqual(given ? { schedulingCostTokens: 2 } : {});
  }
});

describe("the close", () => {
  test("ends what is live, refuses what is new, and tells what it can", async () => {
    const plugin = recording({ classify: (request) => request });
    const runner = makeRunner(plugin);
    const [a, b] = [runner.begin("a", 1), runner.begin("b", 1)];
    a.sent(W1);
    b.selected(W1);
    b.completed();
    await runner.close();
    expect(names(plugin.events)).toEqual(["sent a", "completed b", "aborted a"]);
    expect(plugin.events[2]).toMatchObject({ worker: W1, error: { code: "shutting_down" } });
    const refused = expect.objectContaining({ code: "shutting_down", status: 503 });
    expect(() => runner.begin("c", 1)).toThrow(refused);
    expect(() => runner.classify(a, makeInput())).toThrow(refused);
    expect(runner.stats()).toMatchObject({ live: 0, events: { queued: 0, delivered: 3, dropped: 0 } });
  });

  test.each([
    [
      "throws",
      () => {
        throw new Error("no");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no"))],
  ])("a plugin's close that %s is logged", async (_, close) => {
    const runner = makeRunner({ close });
    await runner.close();
    await runner.close();
    expect(runner.log.lines).toEqual([
      { level: "error", message: "the request classifier threw on its close", fields: { cause: new Error("no") } },
    ]);
  });
});

test("calls that do not classify are counted by name", () => {
  const runner = makeRunner({});
  for (const call of ["probe", "probe", "bestWorker"]) runner.bypass(call);
  expect(runner.stats().bypassed).toEqual({ probe: 2, bestWorker: 1 });
});

describe("twenty thousand that wait", () => {
  const ids = Array.from({ length: 20_000 }, (_, i) => `r${i}`);

  test("for the same callback go in the order in which they came, without holding up the process", async () => {
    const asked: (string | undefined)[] = [];
    const held = new Deferred<void>();
    const runner = makeRunner({
      classify(request) {
        asked.push(request.requestId);
        return request;
      },
      onEvent: () => held.promise,
    });
    runner.begin("blocker", 1).aborted();
    await settle();
    const began = performance.now();
    const answers = ids.map((id) => runner.classify(runner.begin(id, 1), makeInput()));
    // Long enough for their timers to look around.
    await sleep(250);
    expect(asked).toEqual([]);
    held.resolve();
    await Promise.all(answers);
    expect(asked).toEqual(ids);
    expect(performance.now() - began).toBeLessThan(2000);
  });

  test("for the end of those that had their ids go as soon as it was told", async () => {
    const trace: string[] = [];
    const held = new Deferred<void>();
    const runner = makeRunner({
      classify(request) {
        trace.push(`classify ${request.requestId}`);
        return request;
      },
      async onEvent(event) {
        if (event.requestId === "blocker") await held.promise;
        else trace.push(`${event.type} ${event.requestId}`);
      },
    });
    runner.begin("blocker", 1).aborted();
    for (const id of ids) runner.begin(id, 1).aborted();
    await settle();
    const began = performance.now();
    const answers = ids.map((id) => runner.classify(runner.begin(id, 1), makeInput()));
    held.resolve();
    await Promise.all(answers);
    expect(trace).toEqual(ids.flatMap((id) => [`aborted ${id}`, `classify ${id}`]));
    expect(performance.now() - began).toBeLessThan(2000);
  });
});
