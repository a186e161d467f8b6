// What a router learns from the answers it passes on, and in which unit it counts.
import { describe, expect, test } from "vitest";
import "../../src/kernel/inlined.js";
import { openAiEdge } from "../../src/frontend/index.js";
import type { RouterOptions } from "../../src/router/contract.js";
import { createRouter } from "../../src/router/create-router.js";
import { VirtualClock } from "../../src/testing/virtual-clock.js";

const item = (n: number) => `data: ${JSON.stringify({ choices: [{ text: `t${n}` }] })}\n\n`;
const usage = (total_tokens: number) => `data: ${JSON.stringify({ choices: [], usage: { total_tokens } })}\n\n`;

/** A router whose worker streams what it is fed. */
async function setUp(options: Partial<RouterOptions> = {}) {
  let feed!: ReadableStreamDefaultController<Uint8Array>;
  const clock = new VirtualClock();
  const router = await createRouter(
    {
      ...{ model: "m", seed: 1, clock, blockSize: 16, workers: [{ workerId: 1, url: "http://w" }] },
      fetch: async () => {
        const body = new ReadableStream<Uint8Array>({
          start(controller) {
            feed = controller;
          },
        });
        return new Response(body, { headers: { "content-type": "text/event-stream" } });
      },
      ...options,
    },
    { entryPoint: "createRouter", edge: openAiEdge },
  );
  return {
    clock,
    router,
    send: (text: string) => feed.enqueue(new TextEncoder().encode(text)),
    end: () => feed.close(),
  };
}

const prompt = Array.from({ length: 32 }, (_, i) => i + 1);
const exact = { exact: true, encode: () => Uint32Array.from(prompt) };

describe("an answer that is passed on", () => {
  test("charges the blocks that it fills, as it comes", async () => {
    const { router, send, end } = await setUp({ tokenizer: exact, config: { routerTrackOutputBlocks: true } });
    const items = router.generate({ model: "m", prompt });
    const first = items.next();
    await expect.poll(() => router.stats().bookings.live).toBe(1);
    const decode = () => router.loads()[0]!.activeDecodeBlocks;
    send(item(0));
    await first;
    expect([decode(), router.loads()[0]!.activePrefillTokens]).toEqual([2, 0]);
    for (let i = 1; i < 40; i++) {
      send(item(i));
      await items.next();
    }
    expect(decode()).toBe(4);
    end();
    for await (const _ of items);
    expect(decode()).toBe(0);
  });

  test("takes room on a rank whose capacity is known, by items and by what the engine reports", async () => {
    const { router, send, end } = await setUp({
      tokenizer: exact,
      config: { useKvEvents: false },
      workers: [{ workerId: 1, url: "http://w", totalKvBlocks: 12 }],
    });
    const other = { tokens: Uint32Array.from({ length: 160 }, (_, i) => i + 900) };
    const held = () => router.overlap(other)[0]?.deviceBlocks ?? 0;
    (await router.select(other)).booking.complete();
    const items = router.generate({ model: "m", prompt });
    const first = items.next();
    await expect.poll(() => router.stats().bookings.live).toBe(1);
    send(item(0) + item(1));
    await first;
    expect(held()).toBe(9); // of 12: 2 of the prompt, 1 of output
    send(usage(32 + 16 * 4));
    end();
    for await (const _ of items);
    expect(held()).toBe(6);
  });
});

describe("with the bytes tokenizer an engine's figures count four times", () => {
  const text = (n: number) => ({ model: "m", prompt: "x".repeat(n) });

  test("token budgets of the queue", async () => {
    const workers = [{ workerId: 1, url: "http://w", maxNumBatchedTokens: 1000 }];
    const { router } = await setUp({ workers, config: { routerQueueThreshold: 0.5 } });
    const kept = [await router.route(text(1999)), await router.route(text(100))];
    const waiting = router.route(text(100)); // 2,099 bytes are more than 500 tokens
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect(router.stats().queue.pending).toBe(1);
    kept[0]!.booking.firstToken();
    kept.push(await waiting);
    for (const { booking } of kept) booking.free();
  });

  test("KV blocks of the overload check and of approximate mode", async () => {
    const workers = [{ workerId: 1, url: "http://w", totalKvBlocks: 16 }];
    const { router } = await setUp({ workers, config: { useKvEvents: false, activeDecodeBlocksThreshold: 0.5 } });
    const first = await router.route(text(16 * 32)); // 32 of 64 blocks of bytes
    (await router.route(text(16))).booking.complete();
    first.booking.complete();
    const busy = await router.route(text(16 * 33));
    await expect(router.route(text(16))).rejects.toMatchObject({ code: "all_eligible_workers_overloaded" });
    busy.booking.complete();
    const tokens = Uint32Array.from({ length: 16 * 80 }, () => 120);
    (await router.route(text(16 * 80))).booking.complete();
    expect(router.overlap({ tokens })[0]!.deviceBlocks).toBe(64);
  });
});
