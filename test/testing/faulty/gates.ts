// Classifiers that hold requests back, with one fault each; the suite must name it (../faulty.test.ts). The fault is
// the suite's name.
import type { ClassifyEvent, ClassifyRequest } from "../../../src/plugins/request-classifier/contract.js";
import { testRequestClassifier } from "../../../src/testing/request-classifier.js";

class GateState {
  readonly running = new Map<string, string>();
  readonly waiting: { key: string; go(): void }[] = [];
}

interface GateOptions {
  /** What requests are gated by; the session unless given. */
  keyOf?(request: ClassifyRequest): string | undefined;
  /** Whether one that gave up leaves the queue, and whether its promise is settled then. */
  leaves?: boolean;
  settles?: boolean;
  /** Whether a terminal event frees a place. */
  frees?(event: ClassifyEvent, key: string): boolean;
  state?: GateState;
}

/** One request of a key at a time. */
function gate({
  keyOf = ({ sessionContext }) => sessionContext?.sessionId,
  leaves = true,
  settles = true,
  frees = () => true,
  state,
}: GateOptions = {}) {
  const { running, waiting } = state ?? new GateState();
  return {
    classify(request: ClassifyRequest, signal: AbortSignal): ClassifyRequest | Promise<ClassifyRequest> {
      const key = keyOf(request);
      if (key === undefined) return request;
      const enter = () => {
        running.set(key, request.requestId!);
        return request;
      };
      if (!running.has(key)) return enter();
      return new Promise((resolve, reject) => {
        const waiter = { key, go: () => resolve(enter()) };
        waiting.push(waiter);
        signal.addEventListener("abort", () => {
          if (leaves) waiting.splice(waiting.indexOf(waiter), 1);
          if (settles) reject(signal.reason);
        });
      });
    },
    onEvent(event: ClassifyEvent) {
      if (event.type !== "completed" && event.type !== "aborted") return;
      for (const [key, id] of running) {
        if (id !== event.requestId || !frees(event, key)) continue;
        running.delete(key);
        const next = waiting.findIndex((waiter) => waiter.key === key);
        if (next >= 0) waiting.splice(next, 1)[0]!.go();
      }
    },
  };
}

testRequestClassifier("none", () => gate());

testRequestClassifier("leaks a waiter", () => gate({ settles: false }));
testRequestClassifier("lets those in that gave up", () => gate({ leaves: false }));
testRequestClassifier("forgets requests that fail", () => gate({ frees: ({ type }) => type === "completed" }));

const tenantOf = ({ attributes }: ClassifyRequest) => attributes.get("tenant");
testRequestClassifier("leaks waiters of tenants", () => gate({ keyOf: tenantOf, leaves: false, settles: false }));
testRequestClassifier("lets those of tenants in that gave up", () => gate({ keyOf: tenantOf, leaves: false }));
testRequestClassifier("forgets requests of tenants that fail", () =>
  gate({ keyOf: tenantOf, frees: ({ type }) => type === "completed" }),
);
testRequestClassifier("forgets requests of one tenant that fail", () =>
  gate({ keyOf: tenantOf, frees: ({ type }, tenant) => type === "completed" || tenant !== "acme" }),
);
testRequestClassifier("forgets requests of one user that find no worker", () =>
  gate({
    keyOf: ({ attributes }) => attributes.get("user"),
    frees: (event, user) => event.worker !== undefined || user !== "cy",
  }),
);
testRequestClassifier("forgets requests of a user of a tenant in a session that fail", () =>
  gate({
    keyOf({ attributes, sessionContext }) {
      const key = [sessionContext?.sessionId, attributes.get("tenant"), attributes.get("user")];
      return key.includes(undefined) ? undefined : key.join();
    },
    frees: ({ type }) => type === "completed",
  }),
);
testRequestClassifier("forgets requests of one pinned worker that fail", () =>
  gate({
    keyOf: ({ pinnedWorker }) => pinnedWorker?.workerId,
    frees: ({ type }) => type === "completed",
  }),
);
testRequestClassifier(
  "forgets requests of one project that fail",
  () =>
    gate({
      keyOf: ({ attributes }) => attributes.get("project"),
      frees: ({ type }, project) => type === "completed" || project !== "moon",
    }),
  { attributes: { project: ["sun", "moon"] } },
);
testRequestClassifier("lets those in that gave up while it thought", () => {
  const { classify, onEvent } = gate();
  return {
    async classify(request, signal) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      return classify(request, signal);
    },
    onEvent,
  };
});

const state = new GateState();
testRequestClassifier("gates all routers together", () => gate({ state }));
const only = gate();
testRequestClassifier("is one for all routers", () => only);
