// What `generate` does with workers that answer badly.
import { describe, expect, test } from "vitest";
import { createRouter } from "../../src/index.js";

const encoder = new TextEncoder();

/** Asks a router whose worker gives this answer; what came, and how it ended. */
async function ask(answer: () => Response) {
  const router = await createRouter({ workers: [{ workerId: "7", url: "http://w" }], fetch: async () => answer() });
  const chunks: unknown[] = [];
  let error: unknown;
  try {
    for await (const chunk of router.generate({ prompt: "a" })) chunks.push(chunk);
  } catch (thrown) {
    error = thrown;
  }
  const { live } = router.stats().bookings;
  await router.close();
  return { chunks, error, live };
}

const stream = (start: (controller: ReadableStreamDefaultController<Uint8Array>) => void) =>
  new Response(new ReadableStream({ start }), { headers: { "content-type": "text/event-stream" } });

describe("a worker's answer", () => {
  const failed = (message: string) => expect.objectContaining({ code: "upstream_failed", message });

  test("that breaks off is upstream_failed, behind what came before", async () => {
    let controller!: ReadableStreamDefaultController<Uint8Array>;
    const cause = new Error("socket closed");
    const answer = stream((own) => {
      controller = own;
      own.enqueue(encoder.encode('data: {"n":1}\n\n'));
    });
    const asked = ask(() => answer);
    setTimeout(() => controller.error(cause), 20);
    const { chunks, error, live } = await asked;
    expect(chunks).toEqual([{ n: 1 }]);
    expect(error).toEqual(failed("worker 7 broke its answer off"));
    expect((error as Error).cause).toBe(cause);
    expect(live).toBe(0);
  });

  test.each([
    [
      "a stream",
      () =>
        stream((controller) => {
          controller.enqueue(encoder.encode("data: {secret\n\n"));
          controller.close();
        }),
    ],
    ["a whole answer", () => new Response("<p>secret</p>")],
  ])("that is no JSON is upstream_failed, in %s", async (_, answer) => {
    const { chunks, error, live } = await ask(answer);
    expect(chunks).toEqual([]);
    expect(error).toEqual(failed("the worker's answer is not JSON"));
    expect(live).toBe(0);
  });
});
