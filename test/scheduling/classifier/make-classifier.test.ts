import { describe, expect, test } from "vitest";
import type { RequestClassifierContext } from "../../../src/plugins/request-classifier/contract.js";
import { makeClassifier } from "../../../src/scheduling/classifier/make-classifier.js";
import { forbidUnhandledRejections, TestLog } from "./harness.js";

forbidUnhandledRejections();

const context: RequestClassifierContext = {
  blockSize: 16,
  nowMs: () => 0,
  random: () => 0,
  log: new TestLog(),
  workers: () => [],
};

const unreadable = () => {
  throw Object.create(null);
};

describe("a factory that answers garbage", () => {
  const rows: [name: string, made: unknown, message: RegExp][] = [
    ["nothing", undefined, /answered undefined/],
    ["null", null, /answered null/],
    ["a number", 3, /answered 3,/],
    ["a function", () => {}, /answered/],
    ["a promise", Promise.resolve({}), /must not be async/],
    ["a classify that cannot be read", Object.defineProperty({}, "classify", { get: unreadable }), /read: an object/],
    ["a misspelt classify", { clasify() {} }, /with clasify; did you mean classify\?/],
    ["a misspelt onEvent beside classify", { classify() {}, onEvents() {} }, /did you mean onEvent\?/],
    ["classify that is no function", { classify: 3 }, /whose classify is no function/],
    ["onEvent that is no function", { onEvent: null }, /whose onEvent is no function/],
    ["close that is no function", { close: "x" }, /whose close is no function/],
  ];
  test.each(rows)("%s", (_, made, message) => {
    expect(() => makeClassifier(() => made as never, context)).toThrow(
      expect.objectContaining({ code: "invalid_plugin", message: expect.stringMatching(message) }),
    );
  });
});

test("an async factory that rejects is refused, and leaves no rejection behind", () => {
  const factory = async () => {
    throw new Error("no");
  };
  expect(() => makeClassifier(factory as never, context)).toThrow(expect.objectContaining({ code: "invalid_plugin" }));
});

test.each([new Error("bad luck"), "bad luck", undefined])("a factory that throws %s", (cause) => {
  const factory = () => {
    throw cause;
  };
  const expected = { code: "provider", ...(cause !== undefined && { cause }) };
  expect(() => makeClassifier(factory, context)).toThrow(expect.objectContaining(expected));
});

test("a factory gets the context, and methods are read once, as those of what it made", async () => {
  const given: unknown[] = [];
  let reads = 0;
  class Gate {
    readonly #closed = "closed";
    get close() {
      reads++;
      return () => void given.push(this.#closed);
    }
  }
  const made = makeClassifier((context) => {
    given.push(context);
    return new Gate();
  }, context);
  await made.close!();
  await made.close!();
  expect(given).toEqual([context, "closed", "closed"]);
  expect(reads).toBe(1);
  expect(makeClassifier(() => ({}), context)).toEqual({});
});
