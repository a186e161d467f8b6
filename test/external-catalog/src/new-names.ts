// The same catalog with the names that stay, and a classifier.
import type { HttpFrontend } from "warmroute";
import {
  perRow,
  type RequestClassifierFactory,
  RouterPluginRegistry,
  RouterPlugins,
  WorkerInputs,
  type WorkerSelectionFactory,
  WorkerSelectionPolicy,
} from "warmroute/plugins";

export const factory: WorkerSelectionFactory = ({ role }) => {
  const preferred = perRow(
    WorkerInputs.PREFERRED_TAINT,
    (_ctx, rows, row) => rows.preferredTaintMultiplier?.[row] ?? 1,
  );
  return new WorkerSelectionPolicy({ label: `external ${role}`, scorers: [preferred] });
};

/** Counts the requests of each tenant. */
export const classifierFactory: RequestClassifierFactory = () => {
  const seen = new Map<string, number>();
  return {
    classify(request) {
      const tenant = request.attributes.get("tenant") ?? "nobody";
      seen.set(tenant, (seen.get(tenant) ?? 0) + 1);
      return request.setSchedulingCostTokens(seen.get(tenant)!);
    },
  };
};

export function register(registry: RouterPluginRegistry): void {
  registry.registerWorkerSelection("external-preferred", () => factory);
  registry.registerRequestClassifier("external-preferred", () => classifierFactory);
}

export const emptyRegistry = (): RouterPluginRegistry => new RouterPluginRegistry();

export const install = (frontend: HttpFrontend): HttpFrontend =>
  frontend.plugins(new RouterPlugins().withWorkerSelection(factory));
