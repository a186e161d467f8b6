// The conformance suite of request classifiers, for vitest.
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Random } from "../core/random.js";
import type { ClassifyEvent, RequestClassifier } from "../plugins/request-classifier/contract.js";
import { PATIENCE_MS, sleep, until, within } from "./patience.js";
import {
  classesSetBy,
  classifierFault,
  endSomehow,
  kindsOfRequest,
  type MakeClassifier,
  type TestRequest,
  TestRouter,
} from "./test-router.js";

/** Long enough for all to come to rest that does not wait for an event. */
const REST_MS = 30;

const waiting = (requests: readonly TestRequest[]) => requests.filter((request) => request.waits);

/** Fails with what a request was refused with, unless its caller gave up or the classifier gave it too little time. */
function expectAccepted(request: TestRequest, what: string): void {
  const { error, gaveUp } = request;
  if (error === undefined || gaveUp || (error as { code?: string }).code === "deadline_exceeded") return;
  const why = "classify() must answer with the request that it was given, and throw only for one that must fail";
  expect.fail(`a request ${what} was refused: ${classifierFault(error)}. ${why}`);
}

/** Lets one request through, and ends it. */
async function expectPasses(router: TestRouter, what: string, ...request: Parameters<TestRouter["start"]>) {
  const started = router.start(...request);
  await within(started.ended);
  expect(
    started.waits,
    `a request ${what} still waits after ${PATIENCE_MS} ms, though none runs that it waits for`,
  ).toBe(false);
  expectAccepted(started, what);
  started.selection?.booking.complete();
}

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
 */
export function testRequestClassifier(name: string, make: MakeClassifier): void {
  describe(`request classifier ${name}`, { timeout: 30_000 }, () => {
    let classes: ReadonlySet<string>;
    const opened: TestRouter[] = [];
    const open = async (workers = 2) => {
      const router = await TestRouter.open(make, workers, classes);
      opened.push(router);
      return router;
    };
    const unhandled: unknown[] = [];
    const keep = (reason: unknown) => void unhandled.push(reason);

    beforeAll(async () => {
      classes = await classesSetBy(make);
    });
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

    test.each(Object.entries(kindsOfRequest))("answers a request %s with the same request", async (kind, request) => {
      const router = await open();
      for (let i = 0; i < 3; i++) await expectPasses(router, kind, ...request);
      expect(router.log.faults).toEqual([]);
    });

    test("lets a request go whose caller gives up while it waits", async () => {
      const router = await open();
      const requests = Array.from({ length: 6 }, () => router.start({ sessionId: "s" }));
      await sleep(REST_MS);
      for (const request of waiting(requests)) request.giveUp();
      const settles = "when `signal` fires or `aborted` comes, take the request off your list and settle its promise";
      expect(await until(() => router.pending.size === 0), `a promise of classify() hangs: ${settles}`).toBe(true);
      for (const { selection } of requests) selection?.booking.complete();
      await expectPasses(router, "of a session whose waiting requests were given up", { sessionId: "s" });
    });

    test("holds nothing of requests that have ended, in whatever way and order", async () => {
      const router = await open();
      const random = new Random(5n);
      const sessions = ["a", "b", "c", undefined];
      const requests = Array.from({ length: 80 }, () => {
        const sessionId = sessions[random.below(sessions.length)];
        return router.start(sessionId === undefined ? {} : { sessionId });
      });
      await sleep(REST_MS);
      for (const request of waiting(requests)) if (random.below(5) === 0) request.giveUp();
      await endAll(requests, random);
      for (const request of requests) expectAccepted(request, "among others");
      const { live, pending, events } = router.router.stats().classifier!;
      expect({ live, pending, eventsFailed: events.failed }).toEqual({ live: 0, pending: 0, eventsFailed: 0 });
      expect(router.pending.size, "all requests have ended, but promises of classify() are pending").toBe(0);
      for (const sessionId of ["a", "b", "c"]) await expectPasses(router, "after all others", { sessionId });
    });

    test("takes events that it does not know, and in any order", async () => {
      const router = await open();
      await expectTakes(router.classifier, oddEvents("a request that never was"));
      const running = router.start({ sessionId: "s", requestId: "twice" });
      await within(running.ended);
      await expectTakes(router.classifier, oddEvents("twice"));
      running.selection?.booking.complete();
      await expectPasses(router, "after events out of order", { sessionId: "s" });
      expect(router.log.faults, "onEvent() must not throw").toEqual([]);
    });

    test("works without workers, and as they come and go", async () => {
      const router = await open(0);
      const early = router.start({ sessionId: "s" });
      await sleep(REST_MS);
      early.giveUp();
      await within(early.ended);
      const { code } = (early.error ?? {}) as { code?: string };
      expect(code ?? "given up", "context.workers() may be empty").toMatch(
        /^(given up|no_endpoints|deadline_exceeded)$/,
      );
      router.addWorker(0);
      await expectPasses(router, "after a worker came", { sessionId: "s" });
      router.addWorker(1);
      router.removeWorker(0);
      await expectPasses(router, "after a worker left", { sessionId: "s" });
      expect(router.log.faults).toEqual([]);
    });

    test("shares nothing with the classifiers of other routers", async () => {
      const [busy, idle] = await Promise.all([open(), open()]);
      for (let i = 0; i < 6; i++) busy.start({ sessionId: "s" });
      await sleep(REST_MS);
      await expectPasses(idle, "of a session that is busy in another router", { sessionId: "s" });
    });

    test("closes soon and quietly, also with requests that run and wait", async () => {
      const router = await open();
      const requests = Array.from({ length: 6 }, () => router.start({ sessionId: "s" }));
      await sleep(REST_MS);
      const closing = Promise.all([router.router.close(), ...requests.map(({ ended }) => ended)]);
      expect(await within(closing), `close() must settle within ${PATIENCE_MS} ms`).toBe(true);
      expect(router.log.faults, "close() must end soon, and neither it nor onEvent() may throw").toEqual([]);
    });
  });
}

/** Ends requests as they are let through, in a random order, until none is left. */
async function endAll(requests: readonly TestRequest[], random: Random): Promise<void> {
  const ended = new Set<TestRequest>();
  const running = () => requests.filter((request) => request.selection && !ended.has(request));
  while (waiting(requests).length > 0 || running().length > 0) {
    const more = await until(() => running().length > 0 || waiting(requests).length === 0);
    const frees = "let the next one go on `completed` and on `aborted`, whatever came before them";
    expect(more, `${waiting(requests).length} requests wait though none runs: ${frees}`).toBe(true);
    const now = running();
    const request = now[random.below(now.length)];
    if (!request) continue;
    ended.add(request);
    await endSomehow(request.selection!, random);
  }
}

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
