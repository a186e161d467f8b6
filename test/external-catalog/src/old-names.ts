// The catalog with the names of before: each is deprecated, and works until 1.7.

import type { HttpFrontend } from "warmroute";
import {
  perRow,
  WorkerInputs,
  type WorkerSelectionFactory,
  WorkerSelectionPolicy,
  WorkerSelectionPolicyRegistry,
} from "warmroute/scheduling";

export const factory: WorkerSelectionFactory = ({ role }) => {
  const preferred = perRow(WorkerInputs.ROUTING, (_ctx, rows, row) => rows.preferredTaintMultiplier?.[row] ?? 1);
  return new WorkerSelectionPolicy({ label: `external ${role}`, scorers: [preferred] });
};

export function register(registry: WorkerSelectionPolicyRegistry): void {
  registry.register("external-preferred", () => factory);
}

export const emptyRegistry = (): WorkerSelectionPolicyRegistry => new WorkerSelectionPolicyRegistry();

export const install = (frontend: HttpFrontend): HttpFrontend => frontend.workerSelectionPolicyFactory(factory);
