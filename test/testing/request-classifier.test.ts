// Classifiers that conform: the reference shapes of spec plugins.md §5.9.
import type {
  ClassifyEvent,
  ClassifyRequest,
  RequestClassifier,
  RequestClassifierContext,
} from "../../src/plugins/request-classifier/contract.js";
import { testRequestClassifier } from "../../src/testing/request-classifier.js";

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

/** One request of a session at a time, as a class whose methods need their object. */
class Gate implements RequestClassifier {
  readonly #running = new Map<string, string>();
  readonly #waiting = new Set<{ session: string; go(): void }>();

  classify(request: ClassifyRequest, signal: AbortSignal): ClassifyRequest | Promise<ClassifyRequest> {
    const session = request.sessionContext?.sessionId;
    if (session === undefined) return request;
    const enter = () => {
      this.#running.set(session, request.requestId!);
      return request;
    };
    if (!this.#running.has(session)) return enter();
    return new Promise((resolve, reject) => {
      const waiter = { session, go: () => resolve(enter()) };
      this.#waiting.add(waiter);
      signal.addEventListener("abort", () => {
        this.#waiting.delete(waiter);
        reject(signal.reason);
      });
    });
  }

  async onEvent({ type, requestId }: ClassifyEvent): Promise<void> {
    if (type !== "completed" && type !== "aborted") return;
    for (const [session, running] of this.#running) {
      if (running !== requestId) continue;
      this.#running.delete(session);
      const next = [...this.#waiting].find((waiter) => waiter.session === session);
      if (!next) return;
      this.#waiting.delete(next);
      next.go();
    }
  }
}
testRequestClassifier("that gates each session", (_context: RequestClassifierContext) => new Gate());
