// How a router and a frontend close: at once, or when what is live has ended.
import { describe, expect, test } from "vitest";
import "../../src/kernel/inlined.js";
import { HttpFrontend } from "../../src/frontend/index.js";
import { createRouter } from "../../src/router/create-router.js";
import { classifies, Diary, settled } from "./plugin-bundle.js";

const tokens = Uint32Array.of(1, 2, 3);
const workers = [{ workerId: "1", url: "http://w1" }];
const coded = (code: string, path?: string) => expect.objectContaining({ code, ...(path ? { path } : {}) });
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Whether a promise has settled, a moment later. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  return Promise.race([promise.then(() => true), pause(40).then(() => false)]);
}

describe("a router that closes with a grace", () => {
  test("refuses new requests at once, and waits for those that are live", async () => {
    const diary = new Diary();
    const router = await createRouter({ workers, plugins: await diary.bundle(classifies) });
    const { booking } = await router.select({ requestId: "a", tokens });
    const closing = router.close({ graceMs: 60_000 });
    const again = router.close();
    await expect(router.select({ requestId: "b", tokens })).rejects.toThrow(coded("shutting_down"));
    expect(await isDone(closing)).toBe(false);
    expect(diary.closed).toEqual([]);
    // What a live request depends on goes on.
    const stored = { parent_hash: null, blocks: [{ block_hash: 1, tokens_hash: 1 }] };
    expect(router.applyEvent({ worker_id: "1", event: { data: { stored } } })).toEqual({ applied: true });
    booking.complete();
    await Promise.all([closing, again]);
    await settled();
    expect(diary.events.map(({ type }) => type)).toEqual(["completed"]);
    expect(diary.closed).toEqual(["classifier 0"]);
    expect(() => router.applyEvent({ worker_id: "1", event: { data: "cleared" } })).toThrow(coded("shutting_down"));
  });

  test("aborts what is left when the grace is over", async () => {
    const router = await createRouter({ workers });
    await router.select({ requestId: "a", tokens });
    const before = performance.now();
    await router.close({ graceMs: 60 });
    expect(performance.now() - before).toBeGreaterThanOrEqual(59);
    expect(router.stats().bookings.live).toBe(0);
  });

  test("waits for a request that is being classified", async () => {
    const diary = new Diary();
    const router = await createRouter({ workers, plugins: await diary.bundle(classifies) });
    let answer = () => {};
    const gate = new Promise<void>((resolve) => {
      answer = resolve;
    });
    diary.classify = async (request) => {
      await gate;
      return request;
    };
    const selecting = router.select({ requestId: "a", tokens });
    const closing = router.close({ graceMs: 60_000 });
    expect(await isDone(closing)).toBe(false);
    answer();
    (await selecting).booking.complete();
    await closing;
    expect(diary.closed).toEqual(["classifier 0"]);
  });

  test("does not wait without one, nor when nothing is live", async () => {
    const router = await createRouter({ workers });
    await router.select({ tokens });
    await router.close();
    expect(router.stats().bookings.live).toBe(0);
    const idle = await createRouter({ workers });
    expect(await isDone(idle.close({ graceMs: 60_000 }))).toBe(true);
  });

  test.each([
    [{ graceMs: -1 }, "graceMs"],
    [{ graceMs: Number.NaN }, "graceMs"],
    [{ graceMs: Number.POSITIVE_INFINITY }, "graceMs"],
    [{ graceMs: "5" }, "graceMs"],
    [{ grace: 5 }, "grace"],
    [5, "options"],
  ])("%o is invalid_request, and closes nothing", async (options, path) => {
    const router = await createRouter({ workers });
    const frontend = new HttpFrontend({ routers: [router] });
    await expect(router.close(options as never)).rejects.toThrow(coded("invalid_request", path));
    await expect(frontend.close(options as never)).rejects.toThrow(coded("invalid_request", path));
    (await router.select({ tokens })).booking.complete();
    await router.close();
  });
});

describe("a frontend that closes with a grace", () => {
  const ask = (frontend: HttpFrontend, model: string) =>
    frontend.fetch(
      new Request("http://router/v1/completions", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model, prompt: "a" }),
      }),
    );

  test("gives it to all its routers at once, and a second call waits for the first", async () => {
    let answer = (_: Response) => {};
    const worker = new Promise<Response>((resolve) => {
      answer = resolve;
    });
    const models = [
      { model: "a", workers },
      { model: "b", workers },
    ];
    let sent = 0;
    const fetch = async () => {
      sent++;
      return (await worker).clone();
    };
    const frontend = new HttpFrontend({ models, fetch });
    const asked = [ask(frontend, "a"), ask(frontend, "b")];
    await expect.poll(() => sent).toBe(2);
    const closing = frontend.close({ graceMs: 60_000 });
    const again = frontend.close();
    expect((await ask(frontend, "a")).status).toBe(503);
    expect(await isDone(closing)).toBe(false);
    expect(await isDone(again)).toBe(false);
    answer(new Response("ok"));
    for (const answered of await Promise.all(asked)) expect(await answered.text()).toBe("ok");
    await Promise.all([closing, again]);
    await expect(frontend.addModel({ model: "c" })).rejects.toThrow(coded("shutting_down"));
  });
});
