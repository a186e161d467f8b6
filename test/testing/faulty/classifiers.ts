// Classifiers with one fault each; the suite must name it (../faulty.test.ts). The fault is the suite's name.
import type { ClassifyEvent, ClassifyRequest } from "../../../src/plugins/request-classifier/contract.js";
import { testRequestClassifier } from "../../../src/testing/request-classifier.js";

class GateState {
  readonly running = new Map<string, string>();
  readonly waiting: { session: string; go(): void }[] = [];
}

interface GateOptions {
  /** Whether one that gave up leaves the queue, and whether its promise is settled then. */
  leaves?: boolean;
  settles?: boolean;
  /** Events that free a place. */
  frees?: readonly string[];
  state?: GateState;
}

/** One request of a session at a time. */
function gate({ leaves = true, settles = true, frees = ["completed", "aborted"], state }: GateOptions = {}) {
  const { running, waiting } = state ?? new GateState();
  return {
    classify(request: ClassifyRequest, signal: AbortSignal): ClassifyRequest | Promise<ClassifyRequest> {
      const session = request.sessionContext?.sessionId;
      if (session === undefined) return request;
      const enter = () => {
        running.set(session, request.requestId!);
        return request;
      };
      if (!running.has(session)) return enter();
      return new Promise((resolve, reject) => {
        const waiter = { session, go: () => resolve(enter()) };
        waiting.push(waiter);
        signal.addEventListener("abort", () => {
          if (leaves) waiting.splice(waiting.indexOf(waiter), 1);
          if (settles) reject(signal.reason);
        });
      });
    },
    onEvent({ type, requestId }: ClassifyEvent) {
      if (!frees.includes(type)) return;
      for (const [session, id] of running) {
        if (id !== requestId) continue;
        running.delete(session);
        const next = waiting.findIndex((waiter) => waiter.session === session);
        if (next >= 0) waiting.splice(next, 1)[0]!.go();
      }
    },
  };
}

testRequestClassifier("none", () => gate());

testRequestClassifier("answers nothing", () => ({ classify: () => undefined as unknown as ClassifyRequest }));
testRequestClassifier("answers a copy", () => ({ classify: (request) => Object.create(request) as ClassifyRequest }));
testRequestClassifier("answers another request", () => {
  let first: ClassifyRequest | undefined;
  return {
    classify(request) {
      first ??= request;
      return first;
    },
  };
});
testRequestClassifier("needs a session", () => ({
  classify(request) {
    if (request.sessionContext!.sessionId === "") throw new Error("an empty session");
    return request;
  },
}));
testRequestClassifier("sets a cost of nothing", () => ({ classify: (request) => request.setSchedulingCostTokens(0) }));
testRequestClassifier("never answers", () => ({ classify: () => new Promise<ClassifyRequest>(() => {}) }));

testRequestClassifier("leaks a waiter", () => gate({ settles: false }));
testRequestClassifier("lets those in that gave up", () => gate({ leaves: false }));
testRequestClassifier("forgets requests that fail", () => gate({ frees: ["completed"] }));

testRequestClassifier("throws on an unknown event", () => ({
  onEvent({ type }) {
    if (!["sent", "responding", "completed", "aborted"].includes(type)) throw new Error(`no such event: ${type}`);
  },
}));
testRequestClassifier("expects events in order", () => {
  const sent = new Set<string>();
  return {
    async onEvent({ type, requestId }) {
      if (type === "sent") sent.add(requestId);
      if (type === "responding" && !sent.has(requestId)) throw new Error("responding before it was sent");
    },
  };
});
testRequestClassifier("never ends with an event", () => ({
  onEvent: ({ type }) => (type === "aborted" ? new Promise<void>(() => {}) : undefined),
}));

testRequestClassifier("needs a worker", ({ workers }) => ({
  classify(request) {
    return request.setWorkerSelectionTarget(workers()[0]!.worker.workerId);
  },
}));

const state = new GateState();
testRequestClassifier("gates all routers together", () => gate({ state }));
const only = gate();
testRequestClassifier("is one for all routers", () => only);

testRequestClassifier("never closes", () => ({ close: () => new Promise<void>(() => {}) }));
testRequestClassifier("throws as it closes", () => ({ close: () => Promise.reject(new Error("the file is gone")) }));
testRequestClassifier("leaves a rejection to nobody", () => ({
  classify(request) {
    void Promise.reject(new Error("the log is full"));
    return request;
  },
}));
testRequestClassifier("is no classifier", () => "gate" as unknown as object);
