import type { RouterPlugins } from "../plugins/bundle.js";
import { VirtualClock } from "./clock.js";
import { type EngineOptions, vllmDefaults } from "./engine.js";
import { createKvMode } from "./kv.js";
import { LeastLoaded, RandomChoice, type ReplayRouter, RoundRobin } from "./modes.js";
import type { Prompts } from "./prompts.js";
import { type ModeSummary, Report } from "./report.js";
import { simulate } from "./simulate.js";
import type { Trace } from "./trace.js";

/** The same for all modes of one replay. */
export interface ReplaySetup {
  trace: Trace;
  prompts: Prompts;
  workers: number;
  /** KV blocks of each worker. */
  blocks: number;
  seed: bigint;
  /** Timestamps and delays are divided by this; 1 = as recorded. */
  speed: number;
  /** What the mode `kv` selects with; the default policy unless given. */
  plugins?: RouterPlugins;
}

export interface ModeContext extends ReplaySetup {
  engine: EngineOptions;
  clock: VirtualClock;
}

/** Every mode by its name on the command line. */
export const modes: Readonly<Record<string, (context: ModeContext) => ReplayRouter | Promise<ReplayRouter>>> = {
  kv: ({ prompts, workers, engine, seed, clock, plugins }) =>
    createKvMode(prompts, workers, engine, { seed, clock, ...(plugins ? { plugins } : {}) }),
  round_robin: ({ workers }) => new RoundRobin(workers),
  random: ({ workers, seed }) => new RandomChoice(workers, seed),
  least_loaded: ({ workers, seed }) => new LeastLoaded(workers, seed),
};

/** Replays a trace in one mode. `onEnd` is called as each request ends; `withItl` keeps the gap between all tokens. */
export async function replayMode(
  mode: string,
  setup: ReplaySetup,
  options: { withItl?: boolean; onEnd?: () => void } = {},
): Promise<Report> {
  const { trace, prompts, workers, blocks, speed } = setup;
  const clock = new VirtualClock();
  const engine = { ...vllmDefaults, blocks, blockSize: prompts.blockSize };
  const report = new Report(mode, trace, prompts, workers, options.withItl ?? false);
  const router = await modes[mode]!({ ...setup, engine, clock });
  try {
    await simulate(trace, prompts, router, {
      workers,
      engine,
      clock,
      speed,
      onEnd: (request, result) => {
        report.add(request, result);
        options.onEnd?.();
      },
    });
  } finally {
    await router.close();
  }
  return report;
}

/** The document of `summary.json`. `name` is the trace's file name without its directory. */
export function summaryDocument(name: string, setup: ReplaySetup, reports: readonly Report[]): object {
  const summaries: Record<string, ModeSummary> = {};
  for (const report of reports) summaries[report.mode] = report.summary();
  return {
    trace: name,
    seed: setup.seed.toString(),
    workers: setup.workers,
    block_size: setup.prompts.blockSize,
    modes: summaries,
  };
}
