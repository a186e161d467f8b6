// Names resolve at start-up and never again: nothing that a request carries reaches the registry or a provider.
import fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import "../../src/kernel/inlined.js";
import { createRouter, HttpFrontend } from "../../src/exports.js";
import { type Catalog, createRegistry, parsePolicy, RouterPluginRegistry } from "../../src/plugins.js";

afterEach(() => vi.restoreAllMocks());

const policy = `request_classifier: { type: gate }
worker_selection:
  aggregated: two-tier
  instances: [{ name: two-tier, type: dynamo-two-tier-cost-fn }]
default_policy_family: regular
uncached_isl_buckets: [{ min_tokens: 0, bucket: all }]
policy_classes:
  - { name: reg, policy_family: regular, cache_bucket: all, quantum: 1 }
  - { name: vip, quantum: 1 }
`;

/** What the registry was asked, and how often the provider was called. */
async function watched() {
  const provider = vi.fn(() => () => ({}));
  const catalog: Catalog = (registry) => registry.registerRequestClassifier("gate", provider);
  const plugins = createRegistry(catalog).resolvePlugins(await parsePolicy(policy));
  expect(provider).toHaveBeenCalledOnce();
  const methods = Object.getOwnPropertyNames(RouterPluginRegistry.prototype).filter((name) => name !== "constructor");
  expect(methods.length).toBeGreaterThan(6);
  const spies = methods.map((name) => vi.spyOn(RouterPluginRegistry.prototype, name as "types"));
  return { plugins, calls: () => spies.reduce((sum, { mock }) => sum + mock.calls.length, provider.mock.calls.length) };
}

/** Names of types, instances and classes, and anything else. */
const name = fc.oneof(
  fc.constantFrom("gate", "two-tier", "dynamo-default-cost-fn", "default", "reg", "vip", "regular", "__proto__"),
  fc.string({ minLength: 1 }),
);

test("not from select", async () => {
  const { plugins, calls } = await watched();
  const router = await createRouter({ plugins, workers: [{ workerId: "1" }, { workerId: "2" }] });
  let i = 0;
  await fc.assert(
    fc.asyncProperty(name, name, async (policyClass, sessionId) => {
      const selection = await router.select({ requestId: `r${i++}`, tokens: [1, 2, 3], policyClass, sessionId });
      selection.booking.free();
    }),
    { numRuns: 200 },
  );
  expect(calls()).toBe(1);
  await router.close();
});

test("not from headers and bodies", async () => {
  const { plugins, calls } = await watched();
  const frontend = new HttpFrontend({
    models: [{ model: "m", workers: [{ workerId: "1", url: "http://w1" }] }],
    fetch: async () => new Response('{"choices":[]}', { headers: { "content-type": "application/json" } }),
  }).plugins(plugins);
  const printable = name.filter((text) => /^[\x21-\x7e]+$/.test(text));
  let served = 0;
  await fc.assert(
    fc.asyncProperty(printable, name, async (header, text) => {
      const response = await frontend.fetch(
        new Request("http://router/v1/completions", {
          method: "POST",
          headers: {
            "content-type": "application/json",
            "x-dynamo-meta-policy-class": header,
            "x-session-id": header,
          },
          body: JSON.stringify({
            model: "m",
            prompt: `${text}.`,
            policy: text,
            worker_selection: { aggregated: text },
          }),
        }),
      );
      await response.text();
      if (response.ok) served++;
    }),
    { numRuns: 100 },
  );
  expect(served).toBe(100);
  // A router of the frontend is made from the bundle, not from names.
  expect(calls()).toBe(1);
  await frontend.close();
});
