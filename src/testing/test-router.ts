import "../kernel/inlined.js";
import { defaultConfig } from "../core/config.js";
import { WarmrouteError } from "../core/errors.js";
import type { Random } from "../core/random.js";
import { RouterPlugins } from "../plugins/bundle.js";
import type { PolicyProfiles } from "../plugins/policy/contract.js";
import type {
  ClassifyRequest,
  RequestClassifier,
  RequestClassifierContext,
} from "../plugins/request-classifier/contract.js";
import type { Selection, SelectRequest } from "../router/contract.js";
import { createRouter } from "../router/create-router.js";
import type { KvRouter } from "../router/kv-router.js";
import { syntheticProfile } from "../scheduling/queue/policy-class.js";
import { FaultLog } from "./fault-log.js";
import { until } from "./patience.js";
import { type RequestShape, workerOf } from "./request-shapes.js";

export type MakeClassifier = (context: RequestClassifierContext) => RequestClassifier;

/** A request on its way: its selection, the error that it was refused with, or neither yet. */
export class TestRequest {
  readonly shape: RequestShape;
  selection: Selection | undefined;
  error: unknown;
  readonly ended: Promise<void>;
  readonly #controller = new AbortController();

  constructor(router: KvRouter, requestId: string, shape: RequestShape) {
    this.shape = shape;
    const { parts, attributes = {} } = shape;
    const request: SelectRequest = { requestId, tokens: [1, 2, 3], ...parts };
    const selection = router.select(request, { signal: this.#controller.signal, body: attributes });
    this.ended = selection.then(
      (selected) => {
        this.selection = selected;
      },
      (error) => {
        this.error = error ?? new Error("refused for no reason");
      },
    );
  }

  get waits(): boolean {
    return this.selection === undefined && this.error === undefined;
  }

  get gaveUp(): boolean {
    return this.#controller.signal.aborted;
  }

  giveUp(): void {
    this.#controller.abort();
  }
}

/** A real router whose classifier is the one under test, watched from outside. */
export class TestRouter {
  readonly router: KvRouter;
  readonly log: FaultLog;
  /** The plugin itself. */
  readonly classifier: RequestClassifier;
  /** Promises of `classify` that are not settled. */
  readonly pending: ReadonlySet<unknown>;
  static #requests = 0;

  private constructor(router: KvRouter, log: FaultLog, classifier: RequestClassifier, pending: ReadonlySet<unknown>) {
    this.router = router;
    this.log = log;
    this.classifier = classifier;
    this.pending = pending;
  }

  /** A router with this many workers; `classes` are those that the classifier may set, beside `default`. */
  static async open(make: MakeClassifier, workers: number, classes: Iterable<string> = []): Promise<TestRouter> {
    const log = new FaultLog();
    const pending = new Set<unknown>();
    let classifier: RequestClassifier | undefined;
    const router = await createRouter({
      model: "conformance",
      blockSize: 16,
      seed: 1n,
      plugins: new RouterPlugins({
        requestClassifier: (context) => {
          classifier = make(context);
          return watched(classifier, pending);
        },
        profiles: profilesOf(classes),
      }),
      workers: Array.from({ length: workers }, (_, i) => workerOf(i)),
      attributes: ({ body }) => body as Record<string, string>,
      allowPriority: true,
      log,
    });
    return new TestRouter(router, log, classifier!, pending);
  }

  addWorker(i: number): void {
    this.router.addWorker(workerOf(i));
  }

  removeWorker(i: number): void {
    this.router.removeWorker(workerOf(i).workerId);
  }

  /** Starts a request with an id of its own. */
  start(shape: RequestShape): TestRequest {
    return new TestRequest(this.router, `request-${++TestRouter.#requests}`, shape);
  }
}

function profilesOf(classes: Iterable<string>): PolicyProfiles {
  const explicit = Array.from(classes, (name) => ({ name, queuePolicy: "fcfs" as const, quantum: 1 }));
  const synthetic = syntheticProfile(defaultConfig);
  const policyClasses = [...synthetic.policyClasses, ...explicit.filter(({ name }) => name !== "default")];
  return { profile: { ...synthetic, policyClasses }, models: new Map() };
}

/** The classifier with its answers noted; what is no classifier stays as it is, for the router to refuse. */
function watched(classifier: RequestClassifier, pending: Set<unknown>): RequestClassifier {
  if (typeof classifier?.classify !== "function") return classifier;
  const classify = (request: ClassifyRequest, signal: AbortSignal) => {
    const answer = classifier.classify!(request, signal);
    if (typeof (answer as Promise<unknown> | undefined)?.then !== "function") return answer;
    pending.add(answer);
    const settled = () => pending.delete(answer);
    (answer as Promise<unknown>).then(settled, settled);
    return answer;
  };
  return {
    // Its number of parameters says whether it takes a signal.
    classify: Object.defineProperty(classify, "length", { value: classifier.classify.length }),
    ...(classifier.onEvent && { onEvent: (event) => classifier.onEvent!(event) }),
    ...(classifier.close && { close: () => classifier.close!() }),
  };
}

/** The classes that a classifier sets for these requests: its policy file has them, so the suite's has, too. */
export async function classesSetBy(make: MakeClassifier, shapes: readonly RequestShape[]): Promise<Set<string>> {
  const classes = new Set<string>();
  const noting: MakeClassifier = (context) => {
    const classifier = make(context);
    if (typeof classifier?.classify !== "function") return classifier;
    const classify = async (request: ClassifyRequest, signal: AbortSignal) => {
      const answer = await classifier.classify!(request, signal);
      if (typeof request.policyClass === "string") classes.add(request.policyClass);
      return answer;
    };
    return { classify, ...(classifier.onEvent && { onEvent: (event) => classifier.onEvent!(event) }) };
  };
  // What is no classifier at all is for the tests to tell.
  const test = await TestRouter.open(noting, 2).catch(() => undefined);
  if (!test) return classes;
  const requests = shapes.map((shape) => test.start(shape));
  await endAll(requests, async ({ booking }) => booking.complete());
  void test.router.close();
  return classes;
}

/** Ends requests as they are let through; answers those that still wait when none has run for a while. */
export async function endAll(
  requests: readonly TestRequest[],
  end: (selection: Selection) => Promise<void>,
  next: (n: number) => number = () => 0,
): Promise<TestRequest[]> {
  const ended = new Set<TestRequest>();
  const waiting = () => requests.filter((request) => request.waits);
  const running = () => requests.filter((request) => request.selection && !ended.has(request));
  while (await until(() => running().length > 0 || waiting().length === 0)) {
    const now = running();
    if (now.length === 0) break;
    const request = now[next(now.length)]!;
    ended.add(request);
    await end(request.selection!);
  }
  return waiting();
}

/** Ends a request in one of the ways in which requests end, some of them at the second worker they were sent to. */
export async function endSomehow(first: Selection, random: Random): Promise<void> {
  let selection: Selection | undefined = first;
  if (random.below(2) === 0) first.booking.sent();
  // A retry that is refused has ended the request.
  if (random.below(4) === 0) selection = await first.retry().catch(() => undefined);
  if (!selection) return;
  const { booking } = selection;
  if (random.below(2) === 0) booking.sent();
  if (random.below(2) === 0) booking.firstToken();
  if (random.below(2) === 0) booking.tokens(random.below(100));
  const ways = [
    () => booking.complete({ total_tokens: 40 }),
    () => booking.free(),
    () => booking.abort(),
    () => booking.abort(new Error("the worker failed")),
    () => booking[Symbol.dispose](),
  ];
  ways[random.below(ways.length)]!();
}

/** What a classifier did wrong, in words for its author, with its own error as the cause. */
export function classifierFault(error: unknown): string {
  if (!(error instanceof WarmrouteError)) return String(error);
  const { code, message, cause } = error;
  return `${code}: ${message}${cause === undefined ? "" : ` (${cause})`}`;
}
