import { describe, expect, test } from "vitest";
import { WarmrouteError } from "../../src/core/errors.js";
import { disown, isPromise, isWarmrouteError, reasonOf } from "../../src/core/foreign.js";
import { describe as shortForm } from "../../src/core/ids.js";
import { forbidUnhandledRejections, settle } from "../scheduling/classifier/harness.js";

forbidUnhandledRejections();

const fail = () => {
  throw new Error("do not look");
};
const proxy = new Proxy({}, { get: fail, has: fail, getPrototypeOf: fail, ownKeys: fail });
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const withMessage = (descriptor: PropertyDescriptor) => Object.defineProperty(new Error(), "message", descriptor);

describe("what was thrown", () => {
  const rows: [name: string, thrown: unknown, reason: string][] = [
    ["an error", new TypeError("bad luck"), "bad luck"],
    ["text", "bad luck", "bad luck"],
    ["a long text", "x".repeat(1e6), `${"x".repeat(197)}...`],
    ["an error that says nothing", new Error(), "an error without a message"],
    ["an empty text", "", '""'],
    ["a message that throws", withMessage({ get: fail }), "an object"],
    ["a message that is a symbol", withMessage({ value: Symbol("x") }), "an error without a message"],
    ["an object without a prototype", Object.create(null), "an object"],
    ["a proxy", proxy, "an object"],
    ["a revoked proxy", revoked(), "an object"],
    ["a symbol", Symbol("x"), "Symbol(x)"],
    ["nothing", undefined, "undefined"],
    ["a function", fail, "a function"],
  ];
  // The values are kept out of the runner's hands, which look.
  test.each(rows.map(([name], i) => [name, i] as const))("%s", (_, i) => {
    expect(reasonOf(rows[i]![1])).toBe(rows[i]![2]);
  });
});

test("values are described in short, whatever they are", () => {
  expect(shortForm("x".repeat(1e7))).toBe(`"${"x".repeat(36)}...`);
  for (const value of [proxy, revoked()]) expect(shortForm(value)).toBe("an object");
});

test("our errors are known from others", () => {
  expect(isWarmrouteError(new WarmrouteError("provider", "x"))).toBe(true);
  for (const other of [new Error(), { code: "provider" }, proxy, null]) expect(isWarmrouteError(other)).toBe(false);
});

const then = "then";
const thenable = { [then]: (_: unknown, reject: (reason: unknown) => void) => reject("no") };
const odd = (key: PropertyKey) => Object.defineProperty(Promise.reject("no"), key, { get: fail, configurable: true });

describe("a promise that nobody awaits", () => {
  test.each<[name: string, make: () => unknown]>([
    ["a promise", () => Promise.reject("no")],
    ["a thenable", () => thenable],
    ["a promise whose constructor throws", () => odd("constructor")],
    ["a promise whose then throws", () => odd("then")],
  ])("%s is one, and its rejection is told", async (_, make) => {
    const told: unknown[] = [];
    const value = make();
    expect(isPromise(value)).toBe(true);
    disown(value, (reason) => told.push(reason));
    await settle();
    expect(told).toEqual(["no"]);
  });

  test("other values are none", () => {
    for (const value of [undefined, null, 5, "then", {}, { [then]: 1 }, fail, proxy, revoked()]) {
      expect(isPromise(value)).toBe(false);
      expect(() => disown(value)).not.toThrow();
    }
  });
});
