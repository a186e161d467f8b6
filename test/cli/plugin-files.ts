// A catalog module and policy files in a folder of their own, as users of the command line have them.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const plugins = new URL("../../dist/plugins.js", import.meta.url).href;

const catalog = `
import { appendFileSync } from "node:fs";
import { lowestCost, perRow, WorkerInputs, WorkerSelectionPolicy } from ${JSON.stringify(plugins)};

export function register(registry) {
  // The worker with the highest id takes everything.
  registry.registerWorkerSelection("last-worker", () => () => new WorkerSelectionPolicy({
    label: "last-worker",
    scorers: [perRow(WorkerInputs.NONE, (_, rows, row) => -Number(rows.workerId(row)))],
    picker: lowestCost,
  }));
  registry.registerWorkerSelection("careless", () => () => new WorkerSelectionPolicy({
    label: "careless",
    scorers: [perRow(WorkerInputs.LOAD, (_, { cache }, row) => cache.deviceOverlapBlocks[row])],
  }));
  registry.registerWorkerSelection("no-worker", () => () => { throw new Error("no licence"); });
  registry.registerRequestClassifier("gate", ({ raw: { events } }) => () => ({
    classify(request) {
      if (request.attributes.get("tenant") === "blocked") throw new Error("not this tenant");
      return request;
    },
    onEvent: ({ type, requestId }) => appendFileSync(events, requestId + " " + type + "\\n"),
  }));
}
`;

/** The files by name, and where each is. */
export function pluginFiles() {
  const directory = mkdtempSync(join(tmpdir(), "warmroute-plugins-"));
  const path = (name: string) => join(directory, name);
  const selects = (role: string, type: string) =>
    `worker_selection: { ${role}: mine, instances: [{ name: mine, type: ${type} }] }\n`;
  const gate = `request_classifier: { type: gate, parameters: { events: ${JSON.stringify(path("events.txt"))} } }\n`;
  const files = {
    "catalog.mjs": catalog,
    "throws.mjs": 'throw new Error("no licence");\n',
    "last-worker.yaml": selects("aggregated", "last-worker"),
    "gated.yaml": selects("aggregated", "last-worker") + gate,
    "gate.yaml": gate,
    "careless.yaml": selects("aggregated", "careless"),
    "no-worker.yaml": selects("aggregated", "no-worker"),
    "decode.yaml": selects("decode", "last-worker"),
    "two-faults.yaml": "worker_selektion: {}\nrequest_clasifier: {}\n",
    "other-model.yaml": `models: { big/model: { ${[
      "default_policy_family: f",
      "uncached_isl_buckets: [{ min_tokens: 0, bucket: b }]",
      "policy_classes: [{ name: c, policy_family: f, cache_bucket: b, quantum: 1 }]",
    ].join(", ")} } }\n`,
    "misspelt.yaml": "worker_selektion: {}\n",
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(path(name), text);
  return { directory, path };
}
