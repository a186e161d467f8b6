// The plugins of spec plugins.md §5.9, as their authors would write them.
import { describe, expect, test } from "vitest";
import type {
  ClassifyEvent,
  ClassifyRequest,
  RequestClassifier,
} from "../../../src/plugins/request-classifier/contract.js";
import { forbidUnhandledRejections, makeInput, makeRunner, settle, W1, W2 } from "./harness.js";

forbidUnhandledRejections();

/** One active request of each session; the next one goes on when that has ended. */
class SessionGate implements RequestClassifier {
  readonly #sessions = new Map<string, { active: string; queue: { requestId: string; go: () => void }[] }>();
  readonly #sessionOf = new Map<string, string>();

  classify(request: ClassifyRequest, signal: AbortSignal): ClassifyRequest | Promise<ClassifyRequest> {
    const session = request.sessionContext?.sessionId;
    const { requestId } = request;
    if (session === undefined || requestId === undefined) return request;
    this.#sessionOf.set(requestId, session);
    const gate = this.#sessions.get(session);
    if (!gate) {
      this.#sessions.set(session, { active: requestId, queue: [] });
      return request;
    }
    return new Promise((resolve) => {
      const entry = { requestId, go: () => resolve(request) };
      gate.queue.push(entry);
      signal.addEventListener("abort", () => {
        gate.queue = gate.queue.filter((other) => other !== entry);
      });
    });
  }

  onEvent(event: ClassifyEvent) {
    if (event.type !== "completed" && event.type !== "aborted") return;
    const session = this.#sessionOf.get(event.requestId);
    this.#sessionOf.delete(event.requestId);
    const gate = session === undefined ? undefined : this.#sessions.get(session);
    if (gate?.active !== event.requestId) return;
    const next = gate.queue.shift();
    if (!next) {
      this.#sessions.delete(session!);
      return;
    }
    gate.active = next.requestId;
    next.go();
  }

  get size() {
    return this.#sessions.size + this.#sessionOf.size;
  }
}

describe("a per-session gate", () => {
  const open = () => {
    const gate = new SessionGate();
    const runner = makeRunner(gate);
    const done: string[] = [];
    const start = (requestId: string, sessionId?: string, signal?: AbortSignal) => {
      const lifecycle = runner.begin(requestId, 10);
      const input = makeInput(sessionId === undefined ? {} : { sessionContext: { sessionId } });
      const answer = (async () => runner.classify(lifecycle, input, signal))();
      answer.then(
        () => done.push(requestId),
        () => done.push(`${requestId} failed`),
      );
      return lifecycle;
    };
    return { gate, runner, done, start };
  };

  test("lets one request of a session through at a time, others freely", async () => {
    const { gate, done, start } = open();
    const [a1, a2] = [start("a1", "A"), start("a2", "A"), start("a3", "A"), start("b1", "B"), start("n1")];
    await settle();
    expect(done).toEqual(["a1", "b1", "n1"]);
    a1!.selected(W1);
    a1!.completed();
    await settle();
    expect(done).toEqual(["a1", "b1", "n1", "a2"]);
    a2!.aborted(new Error("lost"));
    await settle();
    expect(done.at(-1)).toBe("a3");
    expect(gate.size).toBe(2 + 2);
  });

  test("a request that gives up its place lets the next one pass in its turn", async () => {
    const { gate, runner, done, start } = open();
    const caller = new AbortController();
    const first = start("a1", "A");
    start("a2", "A", caller.signal);
    const third = start("a3", "A");
    await settle();
    caller.abort();
    await settle();
    expect(done).toEqual(["a1", "a2 failed"]);
    first.aborted();
    await settle();
    expect(done).toEqual(["a1", "a2 failed", "a3"]);
    third.aborted();
    await settle();
    expect(gate.size).toBe(0);
    expect(runner.stats()).toMatchObject({ live: 0, pending: 0 });
  });

  test("two runners do not wait for each other", async () => {
    const [one, two] = [open(), open()];
    one.start("a1", "A");
    one.start("a2", "A");
    two.start("a1", "A");
    await settle();
    expect([one.done, two.done]).toEqual([["a1"], ["a1"]]);
  });
});

test("a pass-through, a deadline setter, a class mapper and a target setter", () => {
  const plugins: [name: string, classify: (request: ClassifyRequest) => ClassifyRequest, overrides: object][] = [
    ["pass-through", (request) => request, {}],
    ["deadline", (request) => request.setDueAtMs(request.ingressAtMs + 30_000), { dueAtMs: 30_900 }],
    [
      "class by tenant",
      (request) => (request.attributes.get("tenant") === "acme" ? request.setPolicyClass("vip") : request),
      { policyClass: "vip" },
    ],
    ["target", (request) => request.setWorkerSelectionTarget(W2.workerId, W2.dpRank), { target: W2 }],
  ];
  for (const [, classify, overrides] of plugins) {
    const runner = makeRunner({ classify });
    const input = makeInput({ attributes: new Map([["tenant", "acme"]]) });
    expect(runner.classify(runner.begin("a", 1), input)).toEqual(overrides);
  }
});

test("a plugin that throws once serves the next request", () => {
  let broken = true;
  const runner = makeRunner({
    classify(request) {
      if (!broken) return request;
      broken = false;
      throw new TypeError("once");
    },
  });
  expect(() => runner.classify(runner.begin("a", 1), makeInput())).toThrow("the request classifier failed");
  expect(runner.classify(runner.begin("b", 1), makeInput())).toEqual({});
});

test("a plugin that never answers, and a caller who gives up", async () => {
  const events: ClassifyEvent[] = [];
  const runner = makeRunner({ classify: () => new Promise(() => {}), onEvent: (event) => void events.push(event) });
  const caller = new AbortController();
  const answer = runner.classify(runner.begin("a", 1), makeInput(), caller.signal) as Promise<unknown>;
  caller.abort();
  await expect(answer).rejects.toMatchObject({ name: "AbortError" });
  expect(events).toStrictEqual([{ type: "aborted", requestId: "a" }]);
});
