// Which answers of a plugin are refused, with which code, and that nothing of a request gets into an error.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { WarmrouteError } from "../../../src/core/errors.js";
import type { ClassifyRequest, RequestClassifier } from "../../../src/plugins/request-classifier/contract.js";
import {
  codeOf,
  forbidUnhandledRejections,
  makeInput,
  makeRunner,
  names,
  recording,
  settle,
  type TestRunner,
} from "./harness.js";

forbidUnhandledRejections();

type Answer = (request: ClassifyRequest) => unknown;
const withAnswer = (answer: Answer, allowPriority = true) => {
  const plugin = recording({ classify: answer as never });
  return { plugin, runner: makeRunner(plugin, { allowPriority }) };
};

const bad = (change: (request: ClassifyRequest) => void): Answer => {
  return (request) => {
    change(request);
    return request;
  };
};

const refused: [name: string, answer: Answer][] = [
  ["nothing", () => undefined],
  ["null", () => null],
  ["a text", () => "request"],
  ["a copy", (request) => ({ ...request })],
  ["a clone with its prototype", (request) => Object.create(Object.getPrototypeOf(request))],
  ["a proxy of it", (request) => new Proxy(request, {})],
  ["one made anew", (request) => Object.create(request)],
  ["a function", () => () => {}],
  ["cost 0", bad((r) => r.setSchedulingCostTokens(0))],
  ["cost −1", bad((r) => r.setSchedulingCostTokens(-1))],
  ["cost 1.5", bad((r) => r.setSchedulingCostTokens(1.5))],
  ["cost NaN", bad((r) => r.setSchedulingCostTokens(Number.NaN))],
  ["cost ∞", bad((r) => r.setSchedulingCostTokens(Number.POSITIVE_INFINITY))],
  ["cost as a text", bad((r) => r.setSchedulingCostTokens("5" as never))],
  ["an unknown class", bad((r) => r.setPolicyClass("nope"))],
  ["a class of the matrix", bad((r) => r.setPolicyClass("reg_cold"))],
  ["an empty class", bad((r) => r.setPolicyClass(""))],
  ["a class that is no text", bad((r) => r.setPolicyClass({} as never))],
  ["a due time that is no number", bad((r) => r.setDueAtMs(Number.NaN))],
  ["a due time of the wrong type", bad((r) => r.setDueAtMs("2030" as never))],
  ["a target that is no id", bad((r) => r.setWorkerSelectionTarget("worker-1"))],
  ["a target beyond u64", bad((r) => r.setWorkerSelectionTarget("18446744073709551616"))],
  ["a target with rank −1", bad((r) => r.setWorkerSelectionTarget("1", -1))],
  ["a target with rank 0.5", bad((r) => r.setWorkerSelectionTarget("1", 0.5))],
  ["a strict priority of −1", bad((r) => r.setStrictPriority(-1))],
  ["a strict priority of 2³²", bad((r) => r.setStrictPriority(2 ** 32))],
  ["a jump that is no number", bad((r) => r.setPriorityJump(Number.NaN))],
];

describe.each([
  ["at once", (answer: Answer) => answer],
  ["later", (answer: Answer) => async (request: ClassifyRequest) => answer(request)],
])("an answer that is refused, given %s", (_, when) => {
  test.each(refused)("%s", async (_name, answer) => {
    const { plugin, runner } = withAnswer(when(answer));
    const first = runner.begin("a", 100);
    await expect((async () => runner.classify(first, makeInput()))()).rejects.toMatchObject({
      code: "invalid_classification_metadata",
      status: 500,
      message: "the request classifier's answer was refused",
      details: {},
    });
    expect(runner.stats()).toMatchObject({ live: 0, pending: 0, failed: 1 });
    await Promise.resolve();
    expect(names(plugin.events)).toEqual(["aborted a"]);
    expect(plugin.events[0]).toMatchObject({ error: { code: "invalid_classification_metadata" } });
    expect(plugin.events[0]).not.toHaveProperty("worker");
    // The log says which rule it was.
    expect(runner.log.lines).toEqual([
      expect.objectContaining({ level: "error", fields: expect.objectContaining({ cause: expect.any(Error) }) }),
    ]);
  });
});

describe("a request whose cost cannot be told is its caller's fault", () => {
  const error = new WarmrouteError("invalid_tokens", "tokens[3] is not an integer");
  const input = makeInput({
    schedulingCost() {
      throw error;
    },
  });
  test.each<[name: string, answer: RequestClassifier["classify"] & {}]>([
    ["at once", (request) => request.setDueAtMs(request.schedulingCostTokens)],
    ["later", async (request) => request.setDueAtMs(request.schedulingCostTokens)],
    [
      "in an error of the plugin's",
      (request) => {
        try {
          return request.setDueAtMs(request.schedulingCostTokens);
        } catch (cause) {
          throw new Error("no cost", { cause });
        }
      },
    ],
  ])("found %s", async (_, classify) => {
    const plugin = recording({ classify });
    const runner = makeRunner(plugin);
    const lifecycle = runner.begin("a", 1);
    await expect((async () => runner.classify(lifecycle, input))()).rejects.toBe(error);
    expect(runner.stats()).toMatchObject({ live: 0, failed: 0 });
    expect(runner.log.lines).toEqual([]);
    await settle();
    expect(plugin.events).toEqual([{ type: "aborted", requestId: "a", error }]);
  });
});

test("the request of another call is another request", async () => {
  let other: ClassifyRequest | undefined;
  const { runner } = withAnswer((request) => {
    other ??= request;
    return other;
  });
  expect(runner.classify(runner.begin("a", 1), makeInput())).toEqual({});
  await expect(codeOf(() => runner.classify(runner.begin("b", 1), makeInput()))).resolves.toBe(
    "invalid_classification_metadata",
  );
});

describe("several faults: the first in the order of spec plugins.md §5.4 counts", () => {
  const why = async (answer: Answer) => {
    const { runner } = withAnswer(answer);
    await codeOf(() => runner.classify(runner.begin("a", 1), makeInput()));
    const cause = runner.log.lines[0]?.fields?.cause as Error | undefined;
    return cause?.message;
  };
  test("another request before a bad cost", async () => {
    expect(await why((request) => void request.setSchedulingCostTokens(0))).toMatch(/not the request/);
  });
  test("a bad cost before a bad class", async () => {
    expect(await why(bad((r) => r.setPolicyClass("nope").setSchedulingCostTokens(0)))).toMatch(/cost/);
  });
  test("a bad class before a due time that is past", async () => {
    expect(await why(bad((r) => r.setDueAtMs(5).setPolicyClass("nope")))).toMatch(/class/);
  });
});

describe("due times, on a clock that shows 1000", () => {
  const rows: [dueAtMs: number, code: string][] = [
    [1000.001, "nothing"],
    [1000, "deadline_exceeded"],
    [999, "deadline_exceeded"],
    [-5, "deadline_exceeded"],
  ];
  test.each(rows)("%d", async (dueAtMs, code) => {
    const { plugin, runner } = withAnswer(bad((request) => request.setDueAtMs(dueAtMs)));
    await expect(codeOf(() => runner.classify(runner.begin("a", 1), makeInput()))).resolves.toBe(code);
    await Promise.resolve();
    expect(plugin.events.map((event) => event.type)).toEqual(code === "nothing" ? [] : ["aborted"]);
  });

  test("the time is judged when the answer is there, and again for a retry", async () => {
    const { runner } = withAnswer(async (request) => {
      runner.clock.time = 3000;
      return request.setDueAtMs(2000);
    });
    await expect(codeOf(() => runner.classify(runner.begin("a", 1), makeInput()))).resolves.toBe("deadline_exceeded");
    const second = withAnswer(bad((request) => request.setDueAtMs(2000))).runner;
    const lifecycle = second.begin("a", 1);
    expect(second.classify(lifecycle, makeInput())).toEqual({ dueAtMs: 2000 });
    lifecycle.retry();
    second.clock.time = 2001;
    expect(() => second.classify(lifecycle, makeInput())).toThrow(
      expect.objectContaining({ code: "deadline_exceeded", status: 429 }),
    );
    expect(lifecycle.live).toBe(false);
  });
});

describe("no value of a request or of a plugin gets into an error or a log", () => {
  const marked = fc.string({ minLength: 1, maxLength: 30, unit: "binary" }).map((text) => `§${text}§`);
  const shown = (error: unknown, { log }: TestRunner) => {
    expect(error).toBeInstanceOf(WarmrouteError);
    const { message, details, help, path } = error as WarmrouteError;
    return JSON.stringify([message, details, help, path, log.lines.map(({ message, fields }) => [message, fields])]);
  };

  test("1,000 requests whose plugin sets what it saw", () => {
    fc.assert(
      fc.property(marked, fc.integer({ min: 0, max: 4 }), (text, what) => {
        const { runner } = withAnswer((request) => {
          if (what === 0) request.setPolicyClass(request.policyClass!);
          if (what === 1) request.setWorkerSelectionTarget(request.sessionContext!.sessionId);
          if (what === 2) request.setSchedulingCostTokens(request.attributes.get("tenant") as never);
          if (what === 3) return request.requestId;
          if (what === 4) throw new RangeError(text);
          return request;
        });
        const attributes = new Map([["tenant", text]]);
        const input = makeInput({ policyClass: text, sessionContext: { sessionId: text }, attributes });
        const lifecycle = runner.begin(text, 1);
        expect(() => runner.begin(text, 1)).toThrow(expect.objectContaining({ code: "duplicate_request" }));
        let error: unknown;
        try {
          runner.classify(lifecycle, input);
        } catch (thrown) {
          error = thrown;
        }
        expect(shown(error, runner)).not.toContain("§");
        try {
          runner.classify(lifecycle, input);
        } catch (thrown) {
          error = thrown;
        }
        expect(shown(error, runner)).not.toContain("§");
      }),
      { numRuns: 1000, seed: 3 },
    );
  });
});
