// The steps of a request's life, and its exactly one end.
import { describe, expect, test } from "vitest";
import type { WorkerRank } from "../../../src/core/types.js";
import { type BookingOwner, PoolBooking } from "../../../src/scheduling/bookings/booking.js";
import type { RequestLifecycle } from "../../../src/scheduling/classifier/lifecycle.js";
import { forbidUnhandledRejections, makeInput, makeRunner, names, recording, settle, W1, W2 } from "./harness.js";

forbidUnhandledRejections();

function begun(inputTokens = 100) {
  const plugin = recording();
  const runner = makeRunner(plugin);
  return { plugin, runner, lifecycle: runner.begin("r", inputTokens) };
}

const error = new Error("the worker broke");
type Verbs = (lifecycle: RequestLifecycle) => void;

describe("events of spec plugins.md §5.6", () => {
  const sent = { type: "sent", requestId: "r", worker: W1 };
  const responding = { type: "responding", requestId: "r", worker: W1 };
  const completed = { type: "completed", requestId: "r", worker: W1, contextTokens: 100 };
  const rows: [name: string, verbs: Verbs, events: object[]][] = [
    [
      "a whole life",
      (l) => {
        l.selected(W1);
        l.sent(W1);
        l.responding(W1);
        l.completed();
      },
      [sent, responding, completed],
    ],
    ["each step only once", (l) => [l.sent(W1), l.sent(W1), l.responding(W1), l.responding(W1)], [sent, responding]],
    ["no responding before sent", (l) => l.responding(W1), []],
    ["no sent after responding", (l) => [l.sent(W1), l.responding(W1), l.sent(W2)], [sent, responding]],
    ["selected, never sent, completed", (l) => [l.selected(W1), l.completed()], [completed]],
    ["completed without a worker", (l) => l.completed(), [{ type: "aborted", requestId: "r" }]],
    ["aborted without a worker", (l) => l.aborted(), [{ type: "aborted", requestId: "r" }]],
    ["aborted with an error", (l) => l.aborted(error), [{ type: "aborted", requestId: "r", error }]],
    [
      "aborted after it was sent",
      (l) => [l.sent(W1), l.aborted(error)],
      [sent, { type: "aborted", requestId: "r", worker: W1, error }],
    ],
    [
      "a retry on another worker",
      (l) => [l.sent(W1), l.responding(W1), l.retry(), l.selected(W2), l.sent(W2), l.responding(W2), l.completed()],
      [sent, responding, { ...sent, worker: W2 }, { ...responding, worker: W2 }, { ...completed, worker: W2 }],
    ],
    [
      "a retry that finds no worker keeps the last",
      (l) => [l.sent(W1), l.retry(), l.aborted(error)],
      [sent, { type: "aborted", requestId: "r", worker: W1, error }],
    ],
    [
      "nothing after the end",
      (l) => [l.aborted(), l.retry(), l.sent(W1), l.responding(W1), l.completed()],
      [{ type: "aborted", requestId: "r" }],
    ],
  ];
  test.each(rows)("%s", async (_, verbs, events) => {
    const { plugin, lifecycle } = begun();
    verbs(lifecycle);
    await settle();
    expect(plugin.events).toStrictEqual(events);
  });
});

test("events come shortly after, not within the call", async () => {
  const { plugin, runner, lifecycle } = begun();
  lifecycle.selected(W1);
  lifecycle.completed();
  expect(plugin.events).toEqual([]);
  expect(runner.stats()).toMatchObject({ live: 0, events: { queued: 1, delivered: 0 } });
  await Promise.resolve();
  expect(runner.stats().events).toEqual({ queued: 0, delivered: 1, failed: 0, abandoned: 0, dropped: 0 });
});

test("a plugin cannot change the ranks that the router holds", async () => {
  const worker: WorkerRank = { workerId: "9", dpRank: 2 };
  const runner = makeRunner({
    onEvent(event) {
      if (event.worker) Reflect.set(event.worker, "workerId", "changed");
    },
  });
  const lifecycle = runner.begin("r", 1);
  lifecycle.selected(worker);
  lifecycle.sent(worker);
  lifecycle.completed();
  await settle();
  expect(worker).toEqual({ workerId: "9", dpRank: 2 });
});

describe("one id, one live request", () => {
  test("a second begin is refused until the first has ended", () => {
    const { runner, lifecycle } = begun();
    expect(() => runner.begin("r", 1)).toThrow(expect.objectContaining({ code: "duplicate_request", status: 409 }));
    expect(lifecycle.live).toBe(true);
    lifecycle.aborted();
    expect(runner.begin("r", 1).live).toBe(true);
  });

  test("an ended lifecycle does not end its successor", async () => {
    const { plugin, runner, lifecycle } = begun();
    lifecycle.aborted();
    const second = runner.begin("r", 1);
    lifecycle.completed();
    lifecycle.aborted(error);
    expect(second.live).toBe(true);
    expect(runner.stats().live).toBe(1);
    await settle();
    expect(names(plugin.events)).toEqual(["aborted r"]);
  });

  test("classifying an ended request is refused, without the plugin", async () => {
    let calls = 0;
    const runner = makeRunner({
      classify(request) {
        calls++;
        return request;
      },
    });
    const lifecycle = runner.begin("r", 1);
    lifecycle.aborted();
    const again = expect.objectContaining({ code: "lifecycle_ended", status: 409 });
    expect(() => runner.classify(lifecycle, makeInput())).toThrow(again);
    const second = runner.begin("r", 1);
    expect(() => runner.classify(lifecycle, makeInput())).toThrow(again);
    expect(second.live).toBe(true);
    expect(calls).toBe(0);
  });
});

describe("progress", () => {
  test("it starts at the prompt, only rises, and stays after the end", () => {
    const { lifecycle } = begun(100);
    const { progress } = lifecycle;
    const steps: [verb: Verbs, contextTokens: number][] = [
      [() => {}, 100],
      [(l) => l.generated(5), 105],
      [(l) => l.contextFloor(50), 105],
      [(l) => l.contextFloor(110), 110],
      [(l) => l.generated(0), 110],
      [(l) => l.retry(), 110],
      [(l) => l.generated(1), 111],
      [(l) => [l.selected(W1), l.completed()], 111],
      [(l) => l.generated(7), 111],
      [(l) => l.contextFloor(500), 111],
    ];
    for (const [verb, expected] of steps) {
      verb(lifecycle);
      expect([progress.contextTokens, lifecycle.contextTokens]).toEqual([expected, expected]);
    }
  });

  test("attempts share it, a new request of the same id does not", () => {
    const { runner, lifecycle } = begun(100);
    const first = lifecycle.progress;
    lifecycle.generated(20);
    lifecycle.retry();
    expect(runner.classify(lifecycle, makeInput({ inputTokens: 130 }))).toEqual({});
    expect([first, lifecycle.progress].map((progress) => progress.contextTokens)).toEqual([130, 130]);
    lifecycle.aborted();
    expect(runner.begin("r", 3).progress.contextTokens).toBe(3);
    expect(first.contextTokens).toBe(130);
  });

  test("the terminal event tells it", async () => {
    const { plugin, lifecycle } = begun(100);
    lifecycle.selected(W1);
    lifecycle.generated(11);
    lifecycle.completed();
    await settle();
    expect(plugin.events).toEqual([{ type: "completed", requestId: "r", worker: W1, contextTokens: 111 }]);
  });
});

describe("a booking and its lifecycle end together, exactly once", () => {
  const ends: Record<string, { verb: (booking: PoolBooking) => void; event: string }> = {
    complete: { verb: (b) => b.complete({ total_tokens: 150 }), event: "completed" },
    free: { verb: (b) => b.free(), event: "completed" },
    abort: { verb: (b) => b.abort(error), event: "aborted" },
    dispose: { verb: (b) => b[Symbol.dispose](), event: "aborted" },
  };
  const orders = Object.keys(ends).flatMap((a) =>
    Object.keys(ends).flatMap((b) => Object.keys(ends).map((c) => [a, b, c] as const)),
  );
  test.each(orders)("%s, %s, %s", async (...order) => {
    const { plugin, runner, lifecycle } = begun();
    let freed = 0;
    const owner: BookingOwner = {
      blockSize: 16,
      tracksOutputBlocks: false,
      nowMs: () => 0,
      bookingPrefillComplete() {},
      bookingOutputBlocks() {},
      bookingFree(booking) {
        // The terminal event is queued before the charges go.
        expect(lifecycle.live).toBe(false);
        booking.live = false;
        freed++;
      },
    };
    const booking = new PoolBooking(owner, "r", W1, 0, 1, 1, 100, 0);
    booking.observe(lifecycle);
    booking.firstToken();
    for (const end of order) ends[end]!.verb(booking);
    lifecycle.completed();
    lifecycle.aborted();
    await settle();
    expect(names(plugin.events)).toEqual(["sent r", "responding r", `${ends[order[0]]!.event} r`]);
    expect(freed).toBe(1);
    expect(runner.stats()).toMatchObject({ live: 0, events: { queued: 0, delivered: 3 } });
  });
});
