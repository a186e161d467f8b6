// Random interleavings of everything that can happen to requests of few ids, against a small model of spec
// plugins.md §5.6: what the plugin hears of each id, in which order, and never two things at once.
import { describe, expect, test } from "vitest";
import { Random } from "../../../bench/baselines/random.js";
import type { ClassifyRequest, RequestClassifier } from "../../../src/plugins/request-classifier/contract.js";
import type { RequestLifecycle } from "../../../src/scheduling/classifier/lifecycle.js";
import { Deferred, forbidUnhandledRejections, makeInput, makeRunner, settle, W1 } from "./harness.js";

forbidUnhandledRejections();

const IDS = ["a", "b", "c"];

/** What is known of one request: its phase, whether it has a worker, and how its classification went. */
interface Request {
  id: string;
  lifecycle: RequestLifecycle;
  phase: "registered" | "sent" | "responding" | "ended";
  selected: boolean;
  caller: AbortController;
  outcome?: string;
}

class World {
  readonly random: Random;
  /** Of the live requests. */
  readonly live = new Map<string, Request>();
  readonly all: Request[] = [];
  /** Events as the model expects them. */
  readonly expected: string[] = [];
  readonly heard: string[] = [];
  readonly answers: (() => void)[] = [];
  readonly callbacks: Deferred<void>[] = [];
  readonly faults: string[] = [];
  readonly asked: string[] = [];
  #inside: string | undefined;
  readonly runner: ReturnType<typeof makeRunner>;

  constructor(seed: number) {
    this.random = new Random(BigInt(seed));
    const plugin: RequestClassifier = {
      classify: (request) => this.classify(request),
      onEvent: (event) => {
        this.enter(`${event.type} ${event.requestId}`);
        this.heard.push(`${event.type} ${event.requestId}`);
        const kind = this.below(4);
        if (kind < 2) {
          this.leave();
          if (kind === 0) throw new Error("callback");
          return;
        }
        const end = new Deferred<void>();
        this.callbacks.push(end);
        return end.promise.finally(() => this.leave());
      },
    };
    this.runner = makeRunner(plugin);
  }

  below = (n: number) => Math.floor(this.random.unit() * n);

  enter(what: string): void {
    if (this.#inside !== undefined) this.faults.push(`${what} within ${this.#inside}`);
    this.#inside = what;
  }

  leave(): void {
    this.#inside = undefined;
  }

  classify(request: ClassifyRequest): ClassifyRequest | Promise<ClassifyRequest> {
    const id = request.requestId!;
    this.enter(`classify ${id}`);
    try {
      this.asked.push(id);
      const told = this.heard.filter((event) => event === `aborted ${id}` || event === `completed ${id}`).length;
      const begun = this.all.filter((other) => other.id === id).length;
      if (told !== begun - 1) this.faults.push(`classify ${id} after ${told} of ${begun - 1} ends`);
      const kind = this.below(5);
      if (kind === 0) return request;
      if (kind === 1) throw new Error("prologue");
      if (kind === 2) return undefined as never;
      return new Promise((resolve, reject) => {
        this.answers.push(() => (kind === 3 ? resolve(request) : reject(new Error("later"))));
      });
    } finally {
      this.leave();
    }
  }

  begin(id: string): void {
    const known = this.live.get(id);
    let code: string | undefined;
    try {
      const lifecycle = this.runner.begin(id, 10);
      const caller = new AbortController();
      const request: Request = { id, lifecycle, phase: "registered", selected: false, caller };
      this.live.set(id, request);
      this.all.push(request);
      this.start(request);
    } catch (error) {
      code = (error as { code: string }).code;
    }
    if (code !== (known ? "duplicate_request" : undefined)) this.faults.push(`begin ${id}: ${code}`);
  }

  /** Classifies; a failure is what ends the request. */
  start(request: Request): void {
    const ended = (error: unknown) => {
      request.outcome = (error as { code?: string }).code ?? "given up";
      this.end(request, "aborted");
    };
    try {
      const answer = this.runner.classify(request.lifecycle, makeInput({ inputTokens: 10 }), request.caller.signal);
      if (!(answer instanceof Promise)) request.outcome = "accepted";
      else
        answer.then(
          () => {
            request.outcome = "accepted";
          },
          (error) => {
            request.outcome = (error as { code?: string }).code ?? "given up";
          },
        );
    } catch (error) {
      ended(error);
    }
  }

  /** The model's terminal event, once. */
  end(request: Request, type: "completed" | "aborted"): void {
    if (request.phase === "ended") return;
    request.phase = "ended";
    this.live.delete(request.id);
    this.expected.push(`${type} ${request.id}`);
  }

  /** One thing that happens to a request that was begun at some time. */
  touch(request: Request): void {
    const { lifecycle } = request;
    switch (this.below(8)) {
      case 0:
        if (request.phase !== "ended") request.selected = true;
        lifecycle.selected(W1);
        break;
      case 1:
        if (request.phase === "registered") {
          request.phase = "sent";
          request.selected = true;
          this.expected.push(`sent ${request.id}`);
        }
        lifecycle.sent(W1);
        break;
      case 2:
        if (request.phase === "sent") {
          request.phase = "responding";
          this.expected.push(`responding ${request.id}`);
        }
        lifecycle.responding(W1);
        break;
      case 3:
        this.end(request, request.selected ? "completed" : "aborted");
        lifecycle.completed();
        break;
      case 4:
        this.end(request, "aborted");
        lifecycle.aborted(new Error("upstream"));
        break;
      case 5:
        if (request.phase !== "ended") request.phase = "registered";
        lifecycle.retry();
        break;
      case 6:
        // Only a classification that waits hears its caller.
        if (request.outcome === undefined) this.end(request, "aborted");
        request.caller.abort();
        break;
      default:
        lifecycle.generated(1);
    }
  }
}

const ofId = (events: readonly string[], id: string) => events.filter((event) => event.endsWith(` ${id}`));

/** What the plugin fails later ends its request at a moment that only the runner knows: read it off the runner. */
function catchUp(world: World): void {
  for (const request of world.all) if (!request.lifecycle.live) world.end(request, "aborted");
}

async function run(seed: number, steps: number): Promise<World> {
  const world = new World(seed);
  for (let i = 0; i < steps; i++) {
    const choice = world.below(10);
    if (choice < 3) world.begin(IDS[world.below(IDS.length)]!);
    else if (choice < 7 && world.all.length > 0) world.touch(world.all[world.below(world.all.length)]!);
    else if (choice === 7) world.answers.splice(world.below(world.answers.length), 1)[0]?.();
    else if (choice === 8) {
      const end = world.callbacks.shift();
      if (world.below(3) === 0) end?.reject(new Error("callback"));
      else end?.resolve();
    } else {
      await settle();
    }
    catchUp(world);
  }
  // Everything ends: what waits is answered, what runs is given up.
  for (let round = 0; round < 10_000; round++) {
    world.callbacks.shift()?.resolve();
    world.answers.shift()?.();
    await settle();
    catchUp(world);
    if (world.callbacks.length + world.answers.length + world.runner.stats().pending === 0) break;
  }
  for (const request of world.all) {
    world.end(request, "aborted");
    request.lifecycle.aborted();
  }
  while (world.runner.stats().events.queued > 0 || world.callbacks.length > 0) {
    world.callbacks.shift()?.resolve();
    await settle();
  }
  return world;
}

describe("1,000 random interleavings", () => {
  test.each(Array.from({ length: 20 }, (_, batch) => batch))("batch %d", async (batch) => {
    let accepted = 0;
    for (let i = 0; i < 50; i++) {
      const seed = batch * 50 + i;
      const world = await run(seed, 60);
      const context = `seed ${seed}`;
      expect(world.faults, context).toEqual([]);
      // Two failures that arrive together end in an order that the model does not know, unless they share an id.
      for (const id of IDS) expect(ofId(world.heard, id), context).toEqual(ofId(world.expected, id));
      const ends = world.heard.filter((event) => event.startsWith("aborted") || event.startsWith("completed"));
      expect(ends.length, context).toBe(world.all.length);
      const { live, pending, classified, events } = world.runner.stats();
      expect([live, pending, events.queued, events.dropped], context).toEqual([0, 0, 0, 0]);
      expect(events.delivered + events.failed, context).toBe(world.heard.length);
      expect(classified, context).toBe(world.asked.length);
      expect(
        world.all.every(({ outcome }) => outcome !== undefined),
        context,
      ).toBe(true);
      accepted += world.all.filter(({ outcome }) => outcome === "accepted").length;
    }
    expect(accepted).toBeGreaterThan(50);
  });
});
