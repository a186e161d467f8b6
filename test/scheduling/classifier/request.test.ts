// What a plugin sees of a request, and what it can set.
import { describe, expect, test } from "vitest";
import type { ClassifyRequest } from "../../../src/plugins/request-classifier/contract.js";
import type { ClassifyInput } from "../../../src/scheduling/classifier/request.js";
import type { ClassifierRunnerOptions } from "../../../src/scheduling/classifier/runner.js";
import { makeInput, makeRunner, W1, W2 } from "./harness.js";

/** Classifies one request with a plugin of one function. */
function classify(
  see: (request: ClassifyRequest) => void,
  input: Partial<ClassifyInput> = {},
  options: Partial<ClassifierRunnerOptions> = {},
) {
  const runner = makeRunner(
    {
      classify(request) {
        see(request);
        return request;
      },
    },
    options,
  );
  return runner.classify(runner.begin("r1", 100), makeInput(input));
}

test("a plugin sees what the router knows of the request", () => {
  const attributes = new Map([["tenant", "acme"]]);
  const sessionContext = { sessionId: "s", sessionFinal: true };
  const input = { policyClass: "vip", sessionContext, pinnedWorker: W2, attributes };
  classify((request) => {
    expect(request.requestId).toBe("r1");
    expect(request.policyClass).toBe("vip");
    expect(request.inputTokens).toBe(100);
    expect(request.ingressAtMs).toBe(900);
    expect(request.dueAtMs).toBeUndefined();
    expect(request.schedulingCostTokens).toBe(60);
    expect(request.sessionContext).toEqual(sessionContext);
    expect(request.pinnedWorker).toBe(W2);
    expect(request.attributes).toBe(attributes);
    expect(request.progress.contextTokens).toBe(100);
  }, input);
});

test("what the caller left out is undefined", () => {
  classify((request) => {
    expect([request.policyClass, request.sessionContext, request.pinnedWorker]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });
});

test("the scheduling cost is looked up once, when it is read", () => {
  let lookups = 0;
  const schedulingCost = () => ++lookups;
  classify(() => {}, { schedulingCost });
  expect(lookups).toBe(0);
  classify(
    (request) => {
      expect([request.schedulingCostTokens, request.schedulingCostTokens]).toEqual([1, 1]);
    },
    { schedulingCost },
  );
  expect(lookups).toBe(1);
  classify((request) => expect(request.setSchedulingCostTokens(9).schedulingCostTokens).toBe(9), { schedulingCost });
  expect(lookups).toBe(1);
});

test("nothing of the prompt, the router or the record can be reached from it", () => {
  const prompt = { tokens: [1, 2, 3] };
  const input = { ...makeInput(), prompt };
  classify((request) => {
    expect(Reflect.ownKeys(request)).toEqual([]);
    expect(JSON.stringify(request)).toBe("{}");
    expect(Reflect.ownKeys(request.progress)).toEqual([]);
    const reachable = Reflect.ownKeys(Object.getPrototypeOf(request)).filter((key) => typeof key === "string");
    for (const key of reachable) {
      const value = (request as unknown as Record<string, unknown>)[key];
      if (typeof value !== "function") expect([prompt, input]).not.toContain(value);
    }
  }, input);
});

describe("what a plugin sets is read back, and answered", () => {
  type Set = (request: ClassifyRequest) => ClassifyRequest;
  const rows: [name: string, set: Set, overrides: object][] = [
    ["nothing", (r) => r, {}],
    ["an explicit class", (r) => r.setPolicyClass("vip"), { policyClass: "vip" }],
    ["a family", (r) => r.setPolicyClass("regular"), { policyClass: "regular" }],
    ["a due time", (r) => r.setDueAtMs(1000.5), { dueAtMs: 1000.5 }],
    ["a cost", (r) => r.setSchedulingCostTokens(1), { schedulingCostTokens: 1 }],
    ["a worker", (r) => r.setWorkerSelectionTarget("5"), { target: { workerId: "5" } }],
    ["a rank", (r) => r.setWorkerSelectionTarget("5", 0), { target: { workerId: "5", dpRank: 0 } }],
    ["no target", (r) => r.clearWorkerSelectionTarget(), { target: null }],
    [
      "the last of several",
      (r) => r.setWorkerSelectionTarget("5").clearWorkerSelectionTarget().setWorkerSelectionTarget("6"),
      { target: { workerId: "6" } },
    ],
    [
      "all together",
      (r) => r.setPolicyClass("vip").setDueAtMs(2000).setSchedulingCostTokens(3).clearWorkerSelectionTarget(),
      { policyClass: "vip", dueAtMs: 2000, schedulingCostTokens: 3, target: null },
    ],
  ];
  test.each(rows)("%s", (_, set, overrides) => {
    expect(classify(set, { policyClass: "regular" })).toEqual(overrides);
  });

  test("a setter shows at once", () => {
    classify((request) => {
      request.setPolicyClass("vip").setDueAtMs(5000).setSchedulingCostTokens(7);
      expect([request.policyClass, request.dueAtMs, request.schedulingCostTokens]).toEqual(["vip", 5000, 7]);
    });
  });
});

test("the target of a pinned request stays untouched", () => {
  const setTwice = (request: ClassifyRequest) =>
    void request.setWorkerSelectionTarget("5").clearWorkerSelectionTarget();
  expect(classify(setTwice, { pinnedWorker: W1 })).toEqual({});
  expect(classify((request) => void request.setWorkerSelectionTarget("nonsense"), { pinnedWorker: W1 })).toEqual({});
});

test("priorities are the plugin's only where the host says so", () => {
  const set = (request: ClassifyRequest) => void request.setStrictPriority(2).setPriorityJump(1.5);
  expect(classify(set, {}, { allowPriority: true })).toEqual({ strictPriority: 2, priorityJump: 1.5 });
  for (const setter of ["setStrictPriority", "setPriorityJump"] as const) {
    classify((request) => {
      expect(() => request[setter](1)).toThrow(`${setter}: the host does not set allow_priority`);
    });
  }
  expect(() => classify(set)).toThrow(expect.objectContaining({ code: "request_classifier_failed" }));
});

test("what is set after the answer changes nothing", async () => {
  let kept: ClassifyRequest | undefined;
  const overrides = classify((request) => {
    kept = request.setPolicyClass("vip");
  });
  kept!.setPolicyClass("regular").setSchedulingCostTokens(-1).clearWorkerSelectionTarget();
  expect(overrides).toEqual({ policyClass: "vip" });
  expect(kept!.policyClass).toBe("vip");
});
