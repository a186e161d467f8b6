// What foreign code may throw and return that throws again when it is looked at: it ends in a code, as all else does.
import { expect, test } from "vitest";
import { parsePolicy } from "../../src/plugins/policy/parse.js";
import { type Catalog, createRegistry } from "../../src/plugins/registry.js";
import { forbidUnhandledRejections } from "../scheduling/classifier/harness.js";
import { refusal } from "./refusal.js";

forbidUnhandledRejections();

const doNotLook = () => {
  throw new Error("do not look");
};
const proxy = () =>
  new Proxy({}, { get: doNotLook, has: doNotLook, getPrototypeOf: doNotLook, getOwnPropertyDescriptor: doNotLook });
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const oddPromise = () =>
  Object.defineProperty(Promise.reject(1), "constructor", { get: doNotLook, configurable: true });

const thrown: [name: string, make: () => unknown][] = [
  ["an object without a prototype", () => Object.create(null)],
  ["a proxy", proxy],
  ["a revoked proxy", revoked],
  ["a symbol", () => Symbol("x")],
  ["a message that throws", () => Object.defineProperty(new Error(), "message", { get: doNotLook })],
  ["a message that is a symbol", () => Object.assign(new Error(), { message: Symbol("x") })],
];
const returned = [...thrown, ["a promise like no other", oddPromise] as const];

test.each(thrown)("a register that throws %s", async (_, make) => {
  const catalog = () => {
    throw make();
  };
  expect((await refusal(() => createRegistry(catalog))).code).toBe("invalid_plugin");
});

test("a catalog that cannot be read", async () => {
  for (const catalog of [proxy(), revoked()]) {
    expect((await refusal(() => createRegistry(catalog as Catalog))).code).toBe("invalid_plugin");
  }
});

test.each(returned)("a register that returns %s", async (_, make) => {
  const register = (() => make()) as () => void;
  if (make === oddPromise) expect((await refusal(() => createRegistry(register))).code).toBe("invalid_plugin");
  else expect(createRegistry(register).types().requestClassifier).toEqual([]);
});

const gate = async (provider: unknown) => {
  const registry = createRegistry((registry) => registry.registerRequestClassifier("gate", provider as never));
  const policy = await parsePolicy("request_classifier: { type: gate }");
  return refusal(() => registry.resolvePlugins(policy));
};

test.each(thrown)("a provider that throws %s", async (_, make) => {
  const error = await gate(() => {
    throw make();
  });
  expect(error.code).toBe("provider");
  expect(error.message).toMatch(/refuses its parameters: .+/);
});

test.each(returned)("a provider that returns %s", async (_, make) => {
  expect((await gate(make)).code).toBe("invalid_plugin");
});

test.each(returned)("a schema that answers %s", async (_, make) => {
  expect((await gate((given: { parse(schema: unknown): unknown }) => given.parse({ safeParse: make }))).code).toBe(
    "provider",
  );
});

test("a message quotes at most 200 characters of a name", async () => {
  const long = "x".repeat(100_000);
  const twice: Catalog = (registry) => {
    registry.registerRequestClassifier(long, () => () => ({}));
    registry.registerRequestClassifier(long, () => () => ({}));
  };
  const noProvider: Catalog = (registry) => registry.registerRequestClassifier(long, 1 as never);
  for (const catalog of [twice, noProvider]) {
    expect((await refusal(() => createRegistry(catalog))).message.length).toBeLessThan(400);
  }
  const files = [
    `request_classifier: { type: ${long} }`,
    `worker_selection: { decode: ${long}, instances: [{ name: y${long}, type: t }] }`,
    `a: &b 1\nc: *${long}`,
    `worker_selection: { instances: [{ name: ${long}, type: t }, { name: ${long}, type: t }] }`,
    `default_policy_family: ${long}
uncached_isl_buckets: [{ min_tokens: 0, bucket: b }]
policy_classes: [{ name: c, policy_family: f${long}, cache_bucket: b, quantum: 1 }]`,
    `default_policy_family: f
uncached_isl_buckets: [{ min_tokens: 0, bucket: b }]
policy_classes:
  - { name: c, policy_family: f, cache_bucket: ${long}, quantum: 1 }
  - { name: f, quantum: 1 }`,
  ];
  for (const file of files) {
    const error = await refusal(async () => createRegistry().resolvePlugins(await parsePolicy(file)));
    const errors = (error.details.errors ?? [error]) as { message: string }[];
    for (const { message } of errors) expect(message.length).toBeLessThan(900);
  }
});
