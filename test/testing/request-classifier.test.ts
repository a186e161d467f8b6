// Classifiers that conform: the reference shapes of spec plugins.md §5.9.
import { expect, test } from "vitest";
import type {
  ClassifyEvent,
  ClassifyRequest,
  RequestClassifier,
  RequestClassifierContext,
} from "../../src/plugins/request-classifier/contract.js";
import { testRequestClassifier } from "../../src/testing/request-classifier.js";
import { ofSession, withoutWorker } from "../../src/testing/request-shapes.js";
import { TestRouter } from "../../src/testing/test-router.js";

testRequestClassifier("that does nothing", () => ({}));
testRequestClassifier("that passes all on", () => ({ classify: (request) => request }));
testRequestClassifier("that waits for nothing", () => ({ classify: async (request) => request }));
testRequestClassifier("that sets all it may", ({ nowMs }) => ({
  classify: (request) =>
    request
      .setPolicyClass(request.attributes.get("tenant") ?? "vip")
      .setDueAtMs(nowMs() + 60_000)
      .setSchedulingCostTokens(request.schedulingCostTokens + 1)
      .setStrictPriority(1)
      .setPriorityJump(-1),
}));
testRequestClassifier("that sends all to one worker", (context) => ({
  classify(request) {
    const [first] = context.workers();
    if (!first) return request.clearWorkerSelectionTarget();
    return request.setWorkerSelectionTarget(first.worker.workerId, first.worker.dpRank);
  },
}));

type KeyOf = (request: ClassifyRequest) => string | undefined;

/** One request of a key at a time, as a class whose methods need their object. */
class Gate implements RequestClassifier {
  readonly #keyOf: KeyOf;
  readonly #running = new Map<string, string>();
  readonly #waiting = new Set<{ key: string; go(): void }>();

  constructor(keyOf: KeyOf) {
    this.#keyOf = keyOf;
  }

  classify(request: ClassifyRequest, signal: AbortSignal): ClassifyRequest | Promise<ClassifyRequest> {
    const key = this.#keyOf(request);
    if (key === undefined) return request;
    const enter = () => {
      this.#running.set(key, request.requestId!);
      return request;
    };
    if (!this.#running.has(key)) return enter();
    return new Promise((resolve, reject) => {
      const waiter = { key, go: () => resolve(enter()) };
      this.#waiting.add(waiter);
      signal.addEventListener("abort", () => {
        this.#waiting.delete(waiter);
        reject(signal.reason);
      });
    });
  }

  async onEvent({ type, requestId }: ClassifyEvent): Promise<void> {
    if (type !== "completed" && type !== "aborted") return;
    for (const [key, running] of this.#running) {
      if (running !== requestId) continue;
      this.#running.delete(key);
      const next = [...this.#waiting].find((waiter) => waiter.key === key);
      if (!next) return;
      this.#waiting.delete(next);
      next.go();
    }
  }
}

const gateOf = (keyOf: KeyOf) => (_context: RequestClassifierContext) => new Gate(keyOf);
testRequestClassifier(
  "that gates each session",
  gateOf(({ sessionContext }) => sessionContext?.sessionId),
);
testRequestClassifier(
  "that gates each tenant",
  gateOf(({ attributes }) => attributes.get("tenant")),
);
testRequestClassifier(
  "that gates each pinned worker",
  gateOf(({ pinnedWorker }) => pinnedWorker?.workerId),
);
testRequestClassifier(
  "that gates each project",
  gateOf(({ attributes }) => attributes.get("project")),
  { attributes: { project: ["sun", "moon"] } },
);
testRequestClassifier(
  "that gates all requests",
  gateOf(() => "all"),
);
testRequestClassifier("that gates each user after a while", (context) => {
  const gate = gateOf(({ attributes }) => attributes.get("user"))(context);
  return {
    async classify(request, signal) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      signal.throwIfAborted();
      return gate.classify(request, signal);
    },
    onEvent: (event) => gate.onEvent(event),
  };
});
testRequestClassifier("that makes classes of attributes", () => ({
  classify: (request) =>
    request.setPolicyClass(["tenant", "tier"].map((name) => request.attributes.get(name) || "none").join(".")),
}));

test("what a request is refused for by its router is none of the classifier's doing", async () => {
  const events: ClassifyEvent[] = [];
  const router = await TestRouter.open(() => ({ onEvent: (event) => void events.push(event) }), 2);
  const { ended } = router.start(withoutWorker(ofSession));
  await ended;
  await router.router.close();
  expect(events).toMatchObject([{ type: "aborted", error: { code: "no_endpoints" } }]);
});

test.each([["east"], [[]], [[1]]])("attributes with the values %j are refused", (values) => {
  const attributes = { project: values as unknown as string[] };
  expect(() => testRequestClassifier("unused", () => ({}), { attributes })).toThrow(
    /attributes\.project must be a list of at least one string/,
  );
});
