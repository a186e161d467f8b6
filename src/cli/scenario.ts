import { z } from "zod";
import { systemClock } from "../core/clock.js";
import { type ConfigField, configFields, parseConfig, snakeCase } from "../core/config.js";
import { WarmrouteError } from "../core/errors.js";
import { parseU64 } from "../core/ids.js";
import { consoleLogger } from "../core/log.js";
import { parseWorker } from "../core/worker.js";
import { Column } from "../kernel/abi.js";
import { Kernel } from "../kernel/kernel.js";
import type { ParameterIssue, PluginParameters } from "../plugins/parameters.js";
import { builtInProviders, defaultSelection } from "../plugins/worker-selection/built-in.js";
import type { WorkerSelectionFactory } from "../plugins/worker-selection/contract.js";
import { createPool } from "../scheduling/policy-factory.js";
import { poolSeed } from "../scheduling/pool-seed.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
import { isU64, scenarioError } from "./scenario-error.js";

// ---- the document (CONTRACT: explain)

const id = z.custom<string | number>(isU64);
const count = z.number().int().nonnegative();
const rank = z.strictObject({ worker_id: id, dp_rank: z.number().int().min(0).max(0xffffffff).default(0) });
const weight = z.number().nonnegative();
const fraction = z.number().min(0).max(1);

const shapeOf = (field: ConfigField) => {
  if (field.kind === "number") return z.number().min(field.min).max(field.max);
  return field.kind === "choice" ? z.enum(field.choices) : z.boolean();
};

const configShape = z.strictObject(
  Object.fromEntries([
    ...Object.entries(configFields).map(([name, field]) => [snakeCase(name), shapeOf(field).optional()]),
    // The single weight of older set-ups, which parseConfig reads (docs/configuration.md).
    ["overlap_score_weight", weight.optional()],
  ]),
);

const policyShape = z.strictObject({
  type: z.enum(Object.keys(builtInProviders)),
  parameters: z.record(z.string(), z.unknown()).default({}),
});

const scenarioShape = z.strictObject({
  name: z.string().optional(),
  block_size: z.number().int().min(1).max(1048576),
  role: z.enum(["aggregated", "prefill", "decode", "encode"]).default("aggregated"),
  seed: id.default("0"),
  config: configShape.default({}),
  policy: policyShape.optional(),
  request: z.strictObject({
    input_tokens: z.number().int().positive(),
    router_config_override: z
      .strictObject({
        overlap_score_credit: weight.optional(),
        prefill_load_scale: weight.optional(),
        overlap_score_weight: weight.optional(),
        router_temperature: weight.optional(),
        shared_cache_multiplier: fraction.optional(),
        track_prefill_tokens: z.boolean().optional(),
        assume_kv_reuse: z.boolean().optional(),
      })
      .default({}),
    pinned_worker: rank.optional(),
    allowed_worker_ids: z.array(id).optional(),
    routing_constraints: z
      .strictObject({
        required_taints: z.array(z.string()).default([]),
        preferred_taints: z.record(z.string(), z.number()).default({}),
      })
      .optional(),
    shared_cache_ranges: z.array(z.tuple([count, count])).default([]),
  }),
  workers: z.array(
    z.strictObject({
      ...rank.shape,
      active_prefill_tokens: count.default(0),
      decode_cost_blocks: count.default(0),
      active_requests: count.default(0),
      overlap: z
        .strictObject({ device_blocks: count.default(0), host_blocks: count.default(0), disk_blocks: count.default(0) })
        .prefault({}),
      taints: z.array(z.string()).default([]),
      overloaded: z.boolean().default(false),
    }),
  ),
});

type Scenario = z.output<typeof scenarioShape>;

function parseScenario(input: unknown): Scenario {
  const parsed = scenarioShape.safeParse(input, { reportInput: true });
  if (!parsed.success) throw scenarioError(parsed.error.issues[0]!);
  const scenario = parsed.data;
  const seen = new Set<string>();
  scenario.workers.forEach((worker, i) => {
    const path = `workers[${i}]`;
    const key = `${parseU64(worker.worker_id, `${path}.worker_id`, "invalid_scenario")}/${worker.dp_rank}`;
    if (seen.has(key)) throw new WarmrouteError("invalid_scenario", `${path} repeats the rank ${key}`, { path });
    seen.add(key);
  });
  let end = 0;
  scenario.request.shared_cache_ranges.forEach(([from, to], i) => {
    const path = `request.shared_cache_ranges[${i}]`;
    if (from >= to || from < end) {
      throw new WarmrouteError("invalid_scenario", `${path} is empty, or not after the range before it`, { path });
    }
    end = to;
  });
  return scenario;
}

// ---- the decision

/** Shared-cache blocks at positions from `from` on, over sorted disjoint half-open ranges. */
function hitsBeyond(ranges: readonly (readonly [number, number])[], from: number): number {
  return ranges.reduce((hits, [start, end]) => hits + Math.max(0, end - Math.max(start, from)), 0);
}

/** The factory of the scenario's policy; its provider reports wrong parameters at their place in the scenario. */
function policyFactory({ policy }: Scenario): WorkerSelectionFactory {
  if (policy === undefined) return defaultSelection;
  const parameters: PluginParameters = {
    raw: policy.parameters,
    parse(schema) {
      const parsed = schema.safeParse(policy.parameters);
      if (parsed.success) return parsed.data;
      const issue = parsed.error.issues[0] as ParameterIssue;
      throw scenarioError({ ...issue, path: ["policy", "parameters", ...issue.path] } as z.core.$ZodIssue);
    },
  };
  return builtInProviders[policy.type]!(parameters);
}

function corePool(scenario: Scenario): SelectionCore {
  const core = createPool({
    kernel: new Kernel({
      blockSize: scenario.block_size,
      maxRanks: Math.max(1, Math.min(16384, scenario.workers.length)),
      budgetBytes: 2 ** 28,
      ownNames: true,
      seed: poolSeed(parseU64(scenario.seed, "seed", "invalid_scenario"), `default/default/${scenario.role}`),
    }),
    config: parseConfig(scenario.config, "snake_case"),
    role: scenario.role,
    factory: policyFactory(scenario),
    partition: { model: "default", routingGroup: "default" },
    clock: systemClock,
    log: consoleLogger,
  });
  for (const { worker_id, dp_rank, taints } of scenario.workers) {
    core.addRank(parseWorker({ workerId: String(worker_id), dpStart: dp_rank, taints }), dp_rank);
  }
  return core;
}

function writeColumns(core: SelectionCore, scenario: Scenario): void {
  const { kernel } = core;
  const written = [
    Column.prefill,
    Column.decode,
    Column.requests,
    Column.device,
    Column.host,
    Column.disk,
    Column.shared,
  ].map((which) => kernel.column(which));
  for (const worker of scenario.workers) {
    const found = core.ranks.get(parseU64(worker.worker_id, "worker_id").toString(), worker.dp_rank)!;
    if (worker.overloaded) core.ranks.setOverloaded(found, true);
    const row = kernel.exports.rowOf(found.slot);
    const { device_blocks, host_blocks, disk_blocks } = worker.overlap;
    const values = [
      worker.active_prefill_tokens,
      worker.decode_cost_blocks,
      worker.active_requests,
      device_blocks,
      host_blocks,
      disk_blocks,
      hitsBeyond(scenario.request.shared_cache_ranges, device_blocks),
    ];
    values.forEach((value, i) => {
      written[i]![row] = value;
    });
  }
}

const snakeRank = (r: { workerId: string; dpRank: number }) => ({ worker_id: r.workerId, dp_rank: r.dpRank });

/** The document that `warmroute explain` prints. Throws `invalid_scenario` naming the field. */
export function explainScenario(input: unknown): Record<string, unknown> {
  const scenario = parseScenario(input);
  const core = corePool(scenario);
  writeColumns(core, scenario);
  const { request } = scenario;
  const constraints = request.routing_constraints;
  const answer = core.choose(
    {
      ...(request.pinned_worker === undefined
        ? {}
        : { pinnedWorker: { workerId: request.pinned_worker.worker_id, dpRank: request.pinned_worker.dp_rank } }),
      ...(request.allowed_worker_ids === undefined ? {} : { allowedWorkerIds: request.allowed_worker_ids }),
      ...(constraints === undefined
        ? {}
        : {
            routingConstraints: {
              requiredTaints: constraints.required_taints,
              preferredTaints: constraints.preferred_taints,
            },
          }),
      configOverride: Object.fromEntries(
        Object.entries(request.router_config_override).map(([key, value]) => [
          key.replace(/_([a-z])/g, (_, c: string) => c.toUpperCase()),
          value,
        ]),
      ),
    },
    request.input_tokens,
  );
  return {
    ...(scenario.name === undefined ? {} : { name: scenario.name }),
    outcome: answer.outcome,
    selected: answer.selected && snakeRank(answer.selected),
    candidates: answer.candidates.map((c) => ({
      ...snakeRank(c),
      ...(c.cost === undefined ? {} : { cost: c.cost }),
      probability: c.probability,
      terms: c.terms,
    })),
    excluded: answer.excluded.map((e) => ({ ...snakeRank(e), reason: e.reason })),
  };
}
