import { describe, expect, test } from "vitest";
import { trackResponse } from "../../src/dispatch/index.js";

/** A booking that writes down what it was told. */
function recorder() {
  const calls: string[] = [];
  return {
    calls,
    worker: { workerId: "7", dpRank: 1 },
    sent: () => void calls.push("sent"),
    renew: () => undefined,
    firstToken: () => void calls.push("firstToken"),
    tokens: (n: number) => void calls.push(`tokens ${n}`),
    complete: (usage?: object) => void calls.push(usage ? `complete ${JSON.stringify(usage)}` : "complete"),
    abort: () => void calls.push("abort"),
  };
}

const bytes = (text: string) => new TextEncoder().encode(text);

/** A body that a test feeds chunk by chunk. */
function feed(source: Partial<UnderlyingDefaultSource<Uint8Array>> = {}) {
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  const body = new ReadableStream<Uint8Array>({
    ...source,
    start(own) {
      controller = own;
    },
  });
  return { response: new Response(body), controller };
}

describe("a tracked response", () => {
  test("reports sent, first token and complete, and passes the bytes on", async () => {
    const booking = recorder();
    const answer = await trackResponse(booking, Promise.resolve(new Response("hello", { headers: { "x-a": "1" } })));
    expect(booking.calls).toEqual(["sent"]);
    expect(answer.headers.get("x-a")).toBe("1");
    expect(await answer.text()).toBe("hello");
    expect(booking.calls).toEqual(["sent", "firstToken", "complete"]);
  });

  test("accepts a response that is there already, and one without a body", async () => {
    const booking = recorder();
    const answer = await trackResponse(booking, new Response(null, { status: 204 }));
    expect(answer.status).toBe(204);
    expect(booking.calls).toEqual(["sent", "complete"]);
  });

  test("aborts at once on an error status and leaves the answer as it is", async () => {
    const booking = recorder();
    const upstream = Response.json({ error: "too long" }, { status: 400 });
    const answer = await trackResponse(booking, upstream);
    expect(booking.calls).toEqual(["sent", "abort"]);
    expect(await answer.json()).toEqual({ error: "too long" });
    expect(booking.calls).toEqual(["sent", "abort"]);
  });

  test("aborts and rejects when the dispatch rejects", async () => {
    const booking = recorder();
    await expect(trackResponse(booking, Promise.reject(new Error("refused")))).rejects.toThrow("refused");
    expect(booking.calls).toEqual(["sent", "abort"]);
  });

  test("aborts when the body was read by someone else", async () => {
    const booking = recorder();
    const used = new Response("x");
    await used.text();
    await expect(trackResponse(booking, used)).rejects.toThrow(TypeError);
    expect(booking.calls).toEqual(["sent", "abort"]);
  });

  test("aborts when the body breaks after some bytes, and hands the break on", async () => {
    const booking = recorder();
    const { response, controller } = feed();
    const told: unknown[] = [];
    const onBroken = (error: unknown) => told.push(error);
    const reader = (await trackResponse(booking, response, { onBroken })).body!.getReader();
    controller.enqueue(bytes("a"));
    expect((await reader.read()).value).toEqual(bytes("a"));
    const cause = Object.assign(new Error("quotes the prompt"), { code: "ECONNRESET" });
    controller.error(cause);
    const error = await reader.read().catch((thrown) => thrown);
    expect(error).toMatchObject({
      code: "upstream_failed",
      message: "worker 7 broke its answer off",
      details: { workerId: "7", dpRank: 1, reason: "ECONNRESET" },
      cause,
    });
    expect(told).toEqual([error]);
    expect(booking.calls).toEqual(["sent", "firstToken", "abort"]);
  });

  test.each([
    ["the caller's signal has fired", new Error("mine"), AbortSignal.abort()],
    ["it breaks by an abort", new DOMException("left", "AbortError"), undefined],
  ])("hands a break on as it is, and tells nobody, when %s", async (_, reason, signal) => {
    const { response, controller } = feed();
    const onBroken = () => expect.unreachable();
    const options = signal ? { signal, onBroken } : { onBroken };
    const reader = (await trackResponse(recorder(), response, options)).body!.getReader();
    controller.error(reason);
    expect(await reader.read().catch((thrown) => thrown)).toBe(reason);
  });

  test("aborts once on a cancel in the middle of a read, and cancels the worker's stream", async () => {
    const booking = recorder();
    const cancelled: unknown[] = [];
    const { response } = feed({ cancel: (reason) => void cancelled.push(reason) });
    const reader = (await trackResponse(booking, response)).body!.getReader();
    const pending = reader.read();
    await reader.cancel("gone");
    expect((await pending).done).toBe(true);
    expect(cancelled).toEqual(["gone"]);
    expect(booking.calls).toEqual(["sent", "abort"]);
  });

  test("C24: a stream whose cancel rejects is released all the same", async () => {
    const booking = recorder();
    const { response } = feed({ cancel: () => Promise.reject(new Error("cannot cancel")) });
    const answer = await trackResponse(booking, response);
    await expect(answer.body!.cancel()).resolves.toBeUndefined();
    expect(booking.calls).toEqual(["sent", "abort"]);
  });

  test("never reads ahead of its reader", async () => {
    let pulls = 0;
    const endless = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          pulls += 1;
          controller.enqueue(bytes("x"));
        },
      },
      { highWaterMark: 0 },
    );
    const answer = await trackResponse(recorder(), new Response(endless));
    const reader = answer.body!.getReader();
    for (let i = 1; i <= 3; i++) {
      await reader.read();
      expect(pulls).toBe(i);
    }
    await reader.cancel();
  });
});
