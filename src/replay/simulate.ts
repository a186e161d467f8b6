import type { VirtualClock } from "./clock.js";
import { Engine, type EngineOptions } from "./engine.js";
import { EventQueue } from "./event-queue.js";
import type { Placement, ReplayRouter } from "./modes.js";
import type { Prompts } from "./prompts.js";
import type { Trace } from "./trace.js";

/** What happened to one request. Times are whole microseconds of the virtual clock. */
export interface RequestResult {
  status: "completed" | "rejected";
  placement: Placement;
  arrival: number;
  end: number;
  /** More than one when the engine preempted the request. */
  admissions: { at: number; reusedTokens: number }[];
  firstToken?: number;
  lastToken?: number;
  /** The times between its tokens, in order. */
  gaps: number[];
}

export interface SimulationOptions {
  workers: number;
  engine: EngineOptions;
  clock: VirtualClock;
  /** Timestamps and delays of the trace are divided by this. */
  speed: number;
  /** Called as each request ends; the simulation keeps nothing of it. */
  onEnd: (request: number, result: RequestResult) => void;
}

type Event = { kind: "arrival"; request: number } | { kind: "step"; worker: number };

/**
 * Runs a trace against a router and model engines on a virtual clock.
 * Everything happens in one order, given by time and then by cause, so equal inputs give equal results.
 */
export async function simulate(
  trace: Trace,
  prompts: Prompts,
  router: ReplayRouter,
  options: SimulationOptions,
): Promise<void> {
  const { clock } = options;
  const events = new EventQueue<Event>();
  const live = new Map<number, RequestResult>();
  const arriveAt = (request: number, ms: number, after: number): void =>
    events.push(after + Math.round((ms * 1000) / options.speed), { kind: "arrival", request });

  const end = (request: number, result: RequestResult): void => {
    result.end = clock.micros;
    live.delete(request);
    router.finished(request);
    const { next } = trace.requests[request]!;
    if (next !== undefined) arriveAt(next, trace.requests[next]!.delayMs, clock.micros);
    options.onEnd(request, result);
  };

  const token = (request: number): void => {
    const result = live.get(request)!;
    if (result.lastToken === undefined) {
      result.firstToken = clock.micros;
      router.prefillCompleted(request);
    } else {
      result.gaps.push(clock.micros - result.lastToken);
    }
    result.lastToken = clock.micros;
  };

  const workers = Array.from({ length: options.workers }, (_, worker) => ({
    engine: new Engine(options.engine, {
      admitted: (request, reusedTokens) => live.get(request)!.admissions.push({ at: clock.micros, reusedTokens }),
      blocksRemoved: (blocks) => router.blocksRemoved(worker, blocks),
      blocksStored: (parent, blocks) => router.blocksStored(worker, parent, blocks),
      token,
      finished: (request) => end(request, live.get(request)!),
    }),
    inPass: false,
    /** A step event is on its way. */
    awake: false,
  }));

  const step = (index: number): void => {
    const worker = workers[index]!;
    if (worker.inPass) worker.engine.endPass();
    worker.inPass = worker.awake = !worker.engine.idle;
    if (worker.inPass) events.push(clock.micros + worker.engine.startPass(), { kind: "step", worker: index });
  };

  const arrive = async (request: number): Promise<void> => {
    const routed = router.route(request);
    const placement = routed instanceof Promise ? await routed : routed;
    const result: RequestResult = {
      status: "completed",
      placement,
      arrival: clock.micros,
      end: 0,
      admissions: [],
      gaps: [],
    };
    live.set(request, result);
    const worker = workers[placement.worker]!;
    const { inputTokens, outputTokens } = trace.requests[request]!;
    if (!worker.engine.submit({ request, blocks: prompts.blocks[request]!, inputTokens, outputTokens })) {
      result.status = "rejected";
      return end(request, result);
    }
    // An idle engine wakes after all arrivals of this instant, so that they share its first pass.
    if (!worker.awake) events.push(clock.micros, { kind: "step", worker: placement.worker });
    worker.awake = true;
  };

  trace.requests.forEach((request, index) => {
    if (request.turn === 0) arriveAt(index, request.arrivalMs, 0);
  });
  for (let next = events.pop(); next !== undefined; next = events.pop()) {
    clock.micros = next.at;
    if (next.event.kind === "step") step(next.event.worker);
    else await arrive(next.event.request);
  }
}
