// A runner with a plugin that the test writes, and a log, a clock and a request that it controls.
import { afterEach, beforeEach, expect } from "vitest";
import type { Logger } from "../../../src/core/log.js";
import type { WorkerRank } from "../../../src/core/types.js";
import type { PolicyProfile } from "../../../src/plugins/policy/contract.js";
import type {
  ClassifyEvent,
  ClassifyRequest,
  RequestClassifier,
} from "../../../src/plugins/request-classifier/contract.js";
import type { ClassifyInput } from "../../../src/scheduling/classifier/request.js";
import { ClassifierRunner, type ClassifierRunnerOptions } from "../../../src/scheduling/classifier/runner.js";
import { PolicyClasses } from "../../../src/scheduling/queue/policy-class.js";

export const W1: WorkerRank = { workerId: "1", dpRank: 0 };
export const W2: WorkerRank = { workerId: "18446744073709551615", dpRank: 3 };

/** The queues of spec plugins.md §2.6. */
export const profile: PolicyProfile = {
  defaultPolicyFamily: "regular",
  uncachedIslBuckets: [
    { minTokens: 0, bucket: "warm" },
    { minTokens: 2048, bucket: "cold" },
  ],
  policyClasses: [
    { name: "reg_warm", policyFamily: "regular", cacheBucket: "warm", queuePolicy: "wspt", quantum: 2048 },
    { name: "reg_cold", policyFamily: "regular", cacheBucket: "cold", queuePolicy: "fcfs", quantum: 512 },
    { name: "vip", queuePolicy: "fcfs", quantum: 4096 },
  ],
};

export class TestLog implements Logger {
  readonly lines: { level: string; message: string; fields: Record<string, unknown> | undefined }[] = [];
  #keep = (level: string) => (message: string, fields?: Record<string, unknown>) => {
    this.lines.push({ level, message, fields });
  };
  debug = this.#keep("debug");
  info = this.#keep("info");
  warn = this.#keep("warn");
  error = this.#keep("error");
}

export type TestRunner = ClassifierRunner & { readonly log: TestLog; readonly clock: { time: number; now(): number } };

export function makeRunner(classifier: RequestClassifier, options: Partial<ClassifierRunnerOptions> = {}): TestRunner {
  const log = new TestLog();
  const clock = { time: 1000, now: () => clock.time };
  const classes = new PolicyClasses(profile);
  return Object.assign(new ClassifierRunner({ classifier, classes, clock, log, ...options }), { log, clock });
}

export function makeInput(parts: Partial<ClassifyInput> = {}): ClassifyInput {
  return { inputTokens: 100, ingressAtMs: 900, attributes: new Map(), schedulingCost: () => 60, ...parts };
}

/** A plugin that keeps the events it gets; `parts` are its other methods. */
export function recording(parts: RequestClassifier = {}): RequestClassifier & { readonly events: ClassifyEvent[] } {
  const events: ClassifyEvent[] = [];
  return { ...parts, events, onEvent: (event) => void events.push(event) };
}

/** `type id` of each event. */
export const names = (events: readonly ClassifyEvent[]) => events.map(({ type, requestId }) => `${type} ${requestId}`);

export class Deferred<T> {
  resolve!: (value: T) => void;
  reject!: (reason: unknown) => void;
  readonly promise = new Promise<T>((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });
}

/** A plugin whose answers the test gives: `answers[i]` is of the i-th call. */
export function deferring() {
  const calls: { request: ClassifyRequest; signal: AbortSignal; answer: Deferred<ClassifyRequest> }[] = [];
  const classify = (request: ClassifyRequest, signal: AbortSignal) => {
    const answer = new Deferred<ClassifyRequest>();
    calls.push({ request, signal, answer });
    return answer.promise;
  };
  return { calls, classify };
}

/** Lets everything that is ready go on. */
export const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** The code of what a call throws, or rejects with. */
export async function codeOf(call: () => unknown): Promise<string> {
  try {
    await call();
  } catch (error) {
    return (error as { code: string }).code;
  }
  return "nothing";
}

/** Fails each test of the file that leaves a rejection unhandled. */
export function forbidUnhandledRejections(): void {
  const unhandled: unknown[] = [];
  const keep = (reason: unknown) => void unhandled.push(reason);
  beforeEach(() => {
    unhandled.length = 0;
    process.on("unhandledRejection", keep);
  });
  afterEach(async () => {
    await settle();
    process.off("unhandledRejection", keep);
    expect(unhandled).toEqual([]);
  });
}
