// Policies that conform: the shipped ones, and ones of each shape that a catalog may have.
import { expect, test } from "vitest";
import { parseConfig } from "../../src/core/config.js";
import { builtInProviders, defaultSelection } from "../../src/plugins/worker-selection/built-in.js";
import { WorkerInputs } from "../../src/plugins/worker-selection/components.js";
import type { WorkerSelectionFactory } from "../../src/plugins/worker-selection/contract.js";
import { perRow } from "../../src/plugins/worker-selection/per-row.js";
import { WorkerSelectionPolicy } from "../../src/plugins/worker-selection/policy.js";
import { testWorkerSelectionPolicy } from "../../src/testing/worker-selection.js";
import { parametersOf, silent } from "../scheduling/pool.js";

const made = (factory: WorkerSelectionFactory, config: Parameters<typeof parseConfig>[0] = {}) => {
  const partition = { model: "conformance", routingGroup: "default" };
  return () =>
    factory({ config: parseConfig(config), role: "aggregated", partition, random: () => 0, now: () => 0, log: silent });
};

testWorkerSelectionPolicy("default", made(defaultSelection));
testWorkerSelectionPolicy(
  "dynamo-default-cost-fn, sampling",
  made(builtInProviders["dynamo-default-cost-fn"]!(parametersOf({ router_temperature: 0.5 }))),
);
testWorkerSelectionPolicy(
  "dynamo-two-tier-cost-fn",
  made(builtInProviders["dynamo-two-tier-cost-fn"]!(parametersOf({}))),
);

const { CACHE, LOAD, LATENCY, NETWORK, PREFERRED_TAINT } = WorkerInputs;

testWorkerSelectionPolicy(
  "of one scorer",
  () =>
    new WorkerSelectionPolicy({
      label: "cost",
      scorers: [
        perRow(CACHE | LOAD, (ctx, { cache, load }, row) => {
          return ctx.requestBlocks - cache!.deviceOverlapBlocks[row]! + load!.activeRequests[row]!;
        }),
      ],
    }),
);

testWorkerSelectionPolicy(
  "of everything",
  () =>
    new WorkerSelectionPolicy({
      label: "everything",
      filters: [{ requiredInputs: LOAD, keep: (_ctx, { load }, row) => load!.activeRequests[row]! < 60 }],
      scorers: [
        perRow(PREFERRED_TAINT, (_ctx, { preferredTaintMultiplier }, row) => preferredTaintMultiplier?.[row] ?? 1),
        perRow(LATENCY | NETWORK, (_ctx, { latency, network }, row) => {
          return Number.isNaN(latency!.ttftMsMean[row]! + network!.rttMs[row]!) ? 0 : 1;
        }),
      ],
      picker: {
        requiredInputs: LOAD,
        pick(_ctx, { load, costs }) {
          let best = 0;
          for (let row = 1; row < costs.length; row++) {
            if (load!.activeRequests[row]! + costs[row]! < load!.activeRequests[best]! + costs[best]!) best = row;
          }
          return best;
        },
      },
      exclusiveAffinity: true,
      onSlotReleased() {},
      close: () => Promise.resolve(),
    }),
);

testWorkerSelectionPolicy("of two choices", () => {
  return new WorkerSelectionPolicy({
    label: "two choices",
    picker: {
      requiredInputs: LOAD,
      pick(ctx, { length, load }) {
        const [one, other] = [ctx.randomBelow(length), ctx.randomBelow(length)];
        return load!.activeRequests[one]! <= load!.activeRequests[other]! ? one : other;
      },
    },
  });
});

const byLabels = (keep: (zone: string | undefined, tier: string | undefined) => boolean) => () =>
  new WorkerSelectionPolicy({
    label: "by labels",
    filters: [{ keep: (_ctx, rows, row) => keep(rows.label(row, "zone"), rows.label(row, "tier")) }],
    scorers: [perRow(LOAD, (_ctx, { load }, row) => load!.activeRequests[row]!)],
  });
testWorkerSelectionPolicy(
  "of one zone",
  byLabels((zone) => zone === "zone-1"),
);
testWorkerSelectionPolicy(
  "of labels that its author names",
  byLabels((zone, tier) => zone === "east" && tier === "silver"),
  { labels: { zone: ["east", "west"], tier: ["gold", "silver"] } },
);

testWorkerSelectionPolicy(
  "of each tenant's own workers",
  () =>
    new WorkerSelectionPolicy({
      label: "own workers",
      filters: [{ keep: (ctx, rows, row) => rows.label(row, "tenant") === ctx.attributes.get("tenant") }],
      scorers: [perRow(LOAD, (_ctx, { load }, row) => load!.activeRequests[row]!)],
    }),
  { labels: { tenant: ["sun", "moon"] }, attributes: { tenant: ["sun", "moon", "mars"] } },
);

test.each([
  ["no list", "east", /labels\.zone must be a list of at least one string, not "east"/],
  ["an empty list", [], /labels\.zone must be a list/],
  ["no strings", [1], /labels\.zone must be a list/],
])("labels with %s are refused", (_, zone, words) => {
  const policy = byLabels(() => true);
  expect(() => testWorkerSelectionPolicy("unused", policy, { labels: { zone: zone as unknown as string[] } })).toThrow(
    words,
  );
});

test("unknown options are refused", () => {
  const options = { label: { zone: ["east"] } } as object;
  const policy = byLabels(() => true);
  expect(() => testWorkerSelectionPolicy("unused", policy, options)).toThrow(/options has an unknown field: label/);
});
