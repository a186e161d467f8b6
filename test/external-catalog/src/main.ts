// Runs both catalogs in a router and a frontend, and compares what the entry points export. Throws at the first that
// is not as it must be.
import * as main from "warmroute";
import * as plugins from "warmroute/plugins";
import * as scheduling from "warmroute/scheduling";
import * as newNames from "./new-names.js";
import * as oldNames from "./old-names.js";

function same(is: unknown, wanted: unknown, what: string): void {
  if (is !== wanted) throw new Error(`${what}: ${String(is)} is not ${String(wanted)}`);
}

// ---- one identity for each name

const exportsOf = (module: object) => Object.entries(module) as [string, unknown][];
const inMain = new Map(exportsOf(main));
const inPlugins = new Map(exportsOf(plugins));
for (const [name, value] of inPlugins) same(inMain.get(name), value, `warmroute ${name}`);
for (const [name, value] of exportsOf(scheduling)) same(inPlugins.get(name), value, `warmroute/scheduling ${name}`);
for (const name of ["WorkerSelectionPolicy", "WorkerSelectionPolicyRegistry", "WorkerInputs", "perRow"]) {
  same(name in scheduling, true, `warmroute/scheduling has ${name}`);
}
same(plugins.WorkerSelectionPolicyRegistry, plugins.RouterPluginRegistry, "the registry's old name");
same(plugins.WorkerInputs.ROUTING, plugins.WorkerInputs.PREFERRED_TAINT, "the old name of preferred taints");
same(oldNames.emptyRegistry() instanceof plugins.RouterPluginRegistry, true, "a registry made under its old name");

// ---- both catalogs decide

const workers = [
  { workerId: "1", url: "http://worker-1.test" },
  { workerId: "18446744073709551615", url: "http://worker-2.test", taints: ["fast"] },
];
const routingConstraints = { preferredTaints: { fast: 1 } };

async function decides(catalog: main.Catalog, yaml: string): Promise<void> {
  const bundle = main.createRegistry(catalog).resolvePlugins(await main.parsePolicy(yaml));
  const router = await main.createRouter({ blockSize: 16, seed: 1n, workers, plugins: bundle });
  const selection = await router.select({ requestId: "r", tokens: [1, 2, 3], routingConstraints });
  same(selection.worker.workerId, "18446744073709551615", "the worker with the preferred taint");
  same(selection.policy, "external aggregated", "the policy");
  same(router.stats().classifier?.classified, bundle.requestClassifier && 1, "classified requests");
  await router.close();
}

async function serves(install: (frontend: main.HttpFrontend) => main.HttpFrontend): Promise<void> {
  const deciders: string[] = [];
  const frontend = new main.HttpFrontend({
    models: [{ model: "m", workers }],
    fetch: async () => Response.json({ choices: [{ index: 0, text: "hello", finish_reason: "stop" }] }),
    onDecision: ({ policy }) => deciders.push(policy),
  });
  install(frontend);
  await frontend.start();
  const body = JSON.stringify({ model: "m", prompt: "hello" });
  const headers = { "content-type": "application/json" };
  const response = await frontend.fetch(
    new Request("http://localhost/v1/completions", { method: "POST", headers, body }),
  );
  same(response.status, 200, "the frontend's answer");
  await response.text();
  same(deciders.join(), "external aggregated", "the frontend's policy");
  await frontend.close();
}

const selection = "worker_selection: { aggregated: x, instances: [{ name: x, type: external-preferred }] }\n";
await decides(oldNames, selection);
await decides(newNames, selection);
await decides(newNames, `${selection}request_classifier: { type: external-preferred }\n`);
await serves(oldNames.install);
await serves(newNames.install);
console.log("both catalogs decide, and every name has one identity");
