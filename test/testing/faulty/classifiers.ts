// Classifiers with one fault each; the suite must name it (../faulty.test.ts). The fault is the suite's name.
import type { ClassifyRequest } from "../../../src/plugins/request-classifier/contract.js";
import { testRequestClassifier } from "../../../src/testing/request-classifier.js";

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

testRequestClassifier("holds up one tier for ever", () => ({
  classify: (request) =>
    request.attributes.get("tier") === "silver" ? new Promise<ClassifyRequest>(() => {}) : request,
}));
testRequestClassifier("answers, hears and closes never", () => {
  const never = () => new Promise<never>(() => {});
  return { classify: never, onEvent: never, close: never };
});

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

testRequestClassifier("never closes", () => ({ close: () => new Promise<void>(() => {}) }));
testRequestClassifier("throws as it closes", () => ({ close: () => Promise.reject(new Error("the file is gone")) }));
testRequestClassifier("leaves a rejection to nobody", () => ({
  classify(request) {
    void Promise.reject(new Error("the log is full"));
    return request;
  },
}));
testRequestClassifier("is no classifier", () => "gate" as unknown as object);
