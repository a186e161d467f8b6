// The conformance suite of request classifiers, for vitest.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Random } from "../core/random.js";
import type { ClassifyEvent, RequestClassifier } from "../plugins/request-classifier/contract.js";
import { PATIENCE_MS, sleep, until, within } from "./patience.js";
import { kindsOfRequest, ofSession, type RequestShape, shapesOf, withEach, withoutWorker } from "./request-shapes.js";
import {
  classesSetBy,
  classifierFault,
  endAll,
  endSomehow,
  type MakeClassifier,
  type TestRequest,
  TestRouter,
} from "./test-router.js";
import { checkValues, defaultAttributes, type Values } from "./values.js";

export interface RequestClassifierSuiteOptions {
  /** Attributes that the classifier reads, each with some of its values, beside `tenant`, `tier` and `user`. */
  attributes?: Values;
}

/** Long enough for all to come to rest that does not wait for an event. */
const REST_MS = 30;

const waiting = (requests: readonly TestRequest[]) => requests.filter((request) => request.waits);

/** Fails with what a request was refused with, unless its caller gave up or the classifier gave it too little time. */
function expectAccepted({ error, gaveUp, shape }: TestRequest, when: string): void {
  if (error === undefined || gaveUp || (error as { code?: string }).code === "deadline_exceeded") return;
  const why = "classify() must answer with the request that it was given, and throw only for one that must fail";
  expect.fail(`a request ${shape.what}${when} was refused: ${classifierFault(error)}. ${why}`);
}

/** Lets requests through that started together, and ends them. */
async function expectPass(router: TestRouter, shapes: readonly RequestShape[], when = "") {
  const requests = shapes.map((shape) => router.start(shape));
  expectNoneStuck(await endAll(requests, async ({ booking }) => booking.complete()), when);
  for (const request of requests) expectAccepted(request, when);
}

function expectNoneStuck([stuck]: readonly TestRequest[], when = "") {
  if (!stuck) return;
  const hangs = `a request ${stuck.shape.what}${when} still waits after ${PATIENCE_MS} ms, though none runs`;
  expect.fail(`${hangs}: settle the promise of classify() for every request, and ${frees}`);
}

const frees = "let the next one go on `completed` and on `aborted`, whatever came before them";

/** What a newer host may send, and what a host may send twice or out of order. */
const oddEvents = (requestId: string): ClassifyEvent[] => {
  const worker = { workerId: "18446744073709551615", dpRank: 0 };
  const event = (type: string, more: object = {}) => ({ type, requestId, ...more }) as ClassifyEvent;
  return [
    event("paused-by-a-later-version", { detail: { at: 1 } }),
    event("responding", { worker }),
    event("sent", { worker }),
    event("sent", { worker }),
    event("completed", { worker, contextTokens: 12 }),
    event("completed", { worker }),
    event("aborted"),
    event("aborted", { worker, error: new Error("the worker failed") }),
    event("sent", { worker }),
  ];
};

/**
 * Declares the tests that every request classifier must pass. `make` returns a new classifier, as its factory would
 * for one router.
 *
 * Each classifier runs in real routers. A request may wait for others to end, and for a while; not for ever. The
 * suite's policy file has the classes that the classifier sets.
 *
 * The suite's requests have a session or none, a pin or none, and any of the attributes `tenant` (`acme`, `globex`,
 * `initech`), `tier` (`gold`, `silver`, empty), `user` (`ann`, `bob`, `cy`) and those of `options`, which go first.
 */
export function testRequestClassifier(
  name: string,
  make: MakeClassifier,
  options: RequestClassifierSuiteOptions = {},
): void {
  checkValues({ ...options }, ["attributes"]);
  const attributes = { ...defaultAttributes, ...options.attributes };
  const shapes = shapesOf(attributes);

  describe(`request classifier ${name}`, { timeout: 30_000 }, () => {
    let classes: Promise<Set<string>> | undefined;
    const opened: TestRouter[] = [];
    const open = async (workers = 2) => {
      classes ??= classesSetBy(make, shapes);
      const router = await TestRouter.open(make, workers, await classes);
      opened.push(router);
      return router;
    };
    const unhandled: unknown[] = [];
    const keep = (reason: unknown) => void unhandled.push(reason);

    beforeEach(() => {
      unhandled.length = 0;
      process.on("unhandledRejection", keep);
    });
    afterEach(async () => {
      for (const { router } of opened.splice(0)) void router.close();
      await sleep(0);
      process.off("unhandledRejection", keep);
      expect(unhandled, "a promise of the classifier was rejected, and nobody was told").toEqual([]);
    });

    test("makes a classifier of its own for each router", async () => {
      const [one, other] = await Promise.all([open(), open()]);
      expect(other.classifier, "make() must return a new classifier each time").not.toBe(one.classifier);
    });

    const kinds: [string, readonly RequestShape[]][] = [
      ...kindsOfRequest.map((shape): [string, RequestShape[]] => [shape.what, [shape, shape, shape]]),
      ...Object.entries(attributes).map(([key, values]): [string, RequestShape[]] => {
        return [`with the attribute ${key}`, withEach(key, values)];
      }),
    ];
    test.each(kinds)("answers a request %s with the same request", async (_, requests) => {
      const router = await open();
      for (const shape of requests) await expectPass(router, [shape]);
      expect(router.log.faults).toEqual([]);
    });

    test("lets a request go whose caller gives up while it waits", async () => {
      const router = await open();
      const requests = shapes.flatMap((shape) => Array.from({ length: 4 }, () => router.start(shape)));
      await sleep(REST_MS);
      for (const request of waiting(requests)) request.giveUp();
      const lets = "when `signal` fires or `aborted` comes, take the request off your list and settle its promise";
      expect(await until(() => router.pending.size === 0), `a promise of classify() hangs: ${lets}`).toBe(true);
      for (const { selection } of requests) selection?.booking.complete();
      await expectPass(router, shapes, ", after others like it were given up,");
    });

    test("holds nothing of requests that have ended, in whatever way and order", async () => {
      const router = await open();
      const random = new Random(5n);
      const requests = Array.from({ length: 5 * shapes.length }, () => {
        const shape = shapes[random.below(shapes.length)]!;
        const request = router.start(random.below(8) === 0 ? withoutWorker(shape) : shape);
        if (random.below(8) === 0) request.giveUp();
        return request;
      });
      await sleep(REST_MS);
      for (const request of waiting(requests)) if (random.below(5) === 0) request.giveUp();
      expectNoneStuck(
        await endAll(
          requests,
          (selection) => endSomehow(selection, random),
          (n) => random.below(n),
        ),
      );
      for (const request of requests) if (!isRefused(request)) expectAccepted(request, " among others");
      const left = "all requests have ended, but promises of classify() are pending: settle them on `signal`";
      expect(await until(() => router.pending.size === 0), left).toBe(true);
      const { live, pending, events } = router.router.stats().classifier!;
      expect({ live, pending, eventsFailed: events.failed }).toEqual({ live: 0, pending: 0, eventsFailed: 0 });
      await expectPass(router, shapes, ", after others like it have ended,");
    });

    test("takes events that it does not know, and in any order", async () => {
      const router = await open();
      await expectTakes(router.classifier, oddEvents("a request that never was"));
      const running = router.start({ what: "", parts: { sessionId: "s", requestId: "twice" } });
      await within(running.ended);
      await expectTakes(router.classifier, oddEvents("twice"));
      running.selection?.booking.complete();
      await expectPass(router, [ofSession], ", after events out of order,");
      expect(router.log.faults, "onEvent() must not throw").toEqual([]);
    });

    test("works without workers, and as they come and go", async () => {
      const router = await open(0);
      const early = router.start(ofSession);
      await sleep(REST_MS);
      if (early.waits) early.giveUp();
      await within(early.ended);
      if (!isRefused(early)) expectAccepted(early, ", while there are no workers (context.workers() may be empty),");
      router.addWorker(0);
      await expectPass(router, [ofSession], ", after a worker came,");
      router.addWorker(1);
      router.removeWorker(0);
      await expectPass(router, [ofSession], ", after a worker left,");
      expect(router.log.faults).toEqual([]);
    });

    test("shares nothing with the classifiers of other routers", async () => {
      const [busy, idle] = await Promise.all([open(), open()]);
      for (const shape of shapes) for (let i = 0; i < 3; i++) busy.start(shape);
      await sleep(REST_MS);
      await expectPass(idle, shapes, ", like which many run in another router,");
    });

    test("closes soon and quietly, also with requests that run and wait", async () => {
      const router = await open();
      const requests = shapes.flatMap((shape) => [router.start(shape), router.start(shape)]);
      await sleep(REST_MS);
      const closing = Promise.all([router.router.close(), ...requests.map(({ ended }) => ended)]);
      expect(await within(closing), `close() must settle within ${PATIENCE_MS} ms`).toBe(true);
      expect(router.log.faults, "close() must end soon, and neither it nor onEvent() may throw").toEqual([]);
    });
  });
}

/** No worker may take it, which is not for the classifier to change. */
const isRefused = ({ error }: TestRequest) => (error as { code?: unknown } | undefined)?.code === "no_endpoints";

/** Gives a classifier events, one after the other, as a router does. */
async function expectTakes(classifier: RequestClassifier, events: readonly ClassifyEvent[]): Promise<void> {
  for (const event of events) {
    let fault: string | undefined;
    const given = (async () => classifier.onEvent?.(event))().catch((error) => {
      fault = `threw ${error}`;
    });
    if (!(await within(given))) fault = "never ended";
    const mend = "have a default branch, and expect events in any order";
    expect(fault, `onEvent() with the type ${event.type}: ${mend}`).toBeUndefined();
  }
}
