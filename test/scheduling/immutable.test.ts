// What plugins are given cannot be changed, and nothing of a caller's is handed on as it is.
import { expect, test } from "vitest";
import type { WorkerRank } from "../../src/core/types.js";
import { parseWorker } from "../../src/core/worker.js";
import { RouterPlugins } from "../../src/plugins/bundle.js";
import { parsePolicy } from "../../src/plugins/policy/parse.js";
import { createRegistry } from "../../src/plugins/registry.js";
import type { ClassifyEvent, ClassifyRequest } from "../../src/plugins/request-classifier/contract.js";
import { WorkerInputs } from "../../src/plugins/worker-selection/components.js";
import { WorkerSelectionPolicy } from "../../src/plugins/worker-selection/policy.js";
import { makeClassifier } from "../../src/scheduling/classifier/make-classifier.js";
import { makeInput, makeRunner, settle, W1 } from "./classifier/harness.js";
import { corePool, noted, policyPool, prompt, silent } from "./pool.js";

/** The paths of what can be changed in a value; columns and functions aside. */
function open(value: unknown, path = "it"): string[] {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return [];
  const inner = Object.entries(value).flatMap(([key, part]) => open(part, `${path}.${key}`));
  return Object.isFrozen(value) ? inner : [path, ...inner];
}

const session = { sessionId: "s", parentSessionId: "p", sessionFinal: false, inputTrigger: "other" } as const;
const { CACHE, LOAD, PREFERRED_TAINT, LATENCY, NETWORK } = WorkerInputs;
const requiredInputs = CACHE | LOAD | PREFERRED_TAINT | LATENCY | NETWORK;

test("what a policy's components are given", () => {
  const seen: unknown[] = [];
  const core = policyPool({
    filters: [{ requiredInputs, keep: (ctx, rows) => noted(seen, [ctx, rows], true) }],
    scorers: [{ requiredInputs, score: (ctx, rows, costs) => noted(seen, [ctx, rows], void costs.fill(0)) }],
    picker: { requiredInputs, pick: (ctx, rows) => noted(seen, [ctx, rows], 0) },
  });
  const sessionContext = { ...session, secret: "of the caller" };
  const routingConstraints = { preferredTaints: { a: 1 } };
  core.select({ tokens: prompt(1, 2), sessionContext, routingConstraints, affinityTarget: { workerId: 1 } });
  core.select({ tokens: prompt(1, 2), pinnedWorker: { workerId: 1 } });
  const given = seen as [{ sessionContext?: object }, object][];
  expect(given.length).toBe(4 + 1 + 1 + 1 + 1 + 1);
  for (const [ctx, rows] of given) expect([...open(ctx, "ctx"), ...open(rows, "rows")]).toEqual([]);
  expect(given[0]![0].sessionContext).toEqual(session);
  expect(given[0]![0].sessionContext).not.toBe(sessionContext);
});

test("whether anybody holds the prompt follows the request", () => {
  const seen: boolean[] = [];
  const core = policyPool({
    picker: { requiredInputs: CACHE, pick: (_, { cache }) => noted(seen, cache!.hasTierMatches, 0) },
  });
  core.select({ tokens: prompt(1, 2) });
  expect(seen).toEqual([false]);
});

test("what a policy's factory is given", () => {
  const seen: unknown[] = [];
  corePool({
    policy: ({ log: _, ...init }) => noted(seen, init, new WorkerSelectionPolicy({ label: "x" })),
    config: { routerTemperature: 1 },
  });
  const { config, partition } = seen[0] as { config: object; partition: object };
  expect([config, partition].map(Object.isFrozen)).toEqual([true, true]);
});

test("what a classifier is given", async () => {
  const requests: ClassifyRequest[] = [];
  const events: ClassifyEvent[] = [];
  const runner = makeRunner({
    classify: (request) => noted(requests, request, request),
    onEvent: (event) => void events.push(event),
  });
  const sessionContext = { ...session };
  const pinnedWorker: WorkerRank = { ...W1 };
  const lifecycle = runner.begin("a", 1);
  runner.classify(lifecycle, makeInput({ sessionContext, pinnedWorker }));
  lifecycle.sent(W1);
  lifecycle.responding(W1);
  lifecycle.completed();
  const aborted = runner.begin("b", 1);
  aborted.selected(W1);
  aborted.aborted();
  await settle();
  const request = requests[0]!;
  expect(request.sessionContext).toEqual(session);
  expect(request.sessionContext).not.toBe(sessionContext);
  expect(Object.isFrozen(sessionContext)).toBe(false);
  expect(open([request.sessionContext, request.pinnedWorker], "given")).toEqual(["given"]);
  expect(events.map(({ type }) => type)).toEqual(["sent", "responding", "completed", "aborted"]);
  expect(events.flatMap((event) => open(event, event.type))).toEqual([]);
  const contexts: unknown[] = [];
  makeClassifier((context) => noted(contexts, context, {}), {
    ...{ blockSize: 16, nowMs: () => 0, random: () => 0, log: silent, workers: () => [] },
  });
  expect(Object.isFrozen(contexts[0])).toBe(true);
});

test("the parameters of a provider, and the bundle", async () => {
  const seen: unknown[] = [];
  const registry = createRegistry((registry) => {
    registry.registerRequestClassifier("c", (parameters) => noted(seen, parameters, () => ({})));
    registry.registerWorkerSelection("w", (parameters) => noted(seen, parameters, () => ({}) as never));
  });
  const policy = await parsePolicy(`
worker_selection: { decode: a, instances: [{ name: a, type: w }] }
request_classifier: { type: c, parameters: { list: [{ a: 1 }] } }
default_policy_family: regular
uncached_isl_buckets: [{ min_tokens: 0, bucket: warm }]
policy_classes: [{ name: a, policy_family: regular, cache_bucket: warm, quantum: 8 }]
`);
  const plugins = registry.resolvePlugins(policy);
  expect(seen.length).toBe(2);
  expect(open([...seen, plugins, plugins.withRequestClassifier(() => ({}))], "all")).toEqual(["all"]);
  expect(() => (plugins.customRoles as Set<string>).add("encode")).toThrow(TypeError);
  const roles = new Set(["decode"] as const);
  const made = new RouterPlugins({ customRoles: roles });
  roles.clear();
  expect([...made.customRoles]).toEqual(["decode"]);
});

test("worker records", () => {
  const given = { workerId: 1, labels: { zone: "a" }, taints: ["x"] };
  expect(open([parseWorker(given), parseWorker({ workerId: 2 })], "all")).toEqual(["all"]);
  expect(Object.isFrozen(given.labels)).toBe(false);
});
