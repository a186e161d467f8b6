import { describe, expect, test } from "vitest";
import { Random } from "../../src/core/random.js";
import { Engine, type EngineOptions, type EngineRequest } from "../../src/replay/engine.js";

type Told = [what: string, request: number, tokens?: number];

/** Runs an engine to the end, with the cache mirrored from its events and every rule checked on the way. */
class Bench {
  readonly told: Told[] = [];
  readonly parentOf = new Map<number, number>();
  readonly engine: Engine;
  passes: { prefillTokens: number; decodes: number; used: number }[] = [];

  constructor(readonly options: EngineOptions) {
    this.engine = new Engine(options, {
      admitted: (request, reused) => this.told.push(["admitted", request, reused]),
      token: (request) => this.told.push(["token", request]),
      finished: (request) => this.told.push(["finished", request]),
      blocksRemoved: (blocks) => {
        for (const block of blocks) {
          expect(this.parentOf.delete(block)).toBe(true);
          expect([...this.parentOf.values()]).not.toContain(block);
        }
      },
      blocksStored: (parent, blocks) => {
        let before = parent;
        for (const block of blocks) {
          if (before >= 0) expect(this.parentOf.has(before)).toBe(true);
          expect(this.parentOf.has(block)).toBe(false);
          this.parentOf.set(block, before);
          before = block;
        }
      },
    });
  }

  pass(): void {
    const { engine, options } = this;
    const micros = engine.startPass();
    expect(micros).toBeGreaterThan(0);
    const { prefillTokens, decodes } = engine.pass;
    expect(prefillTokens + decodes).toBeGreaterThan(0);
    expect(prefillTokens + decodes).toBeLessThanOrEqual(options.maxNumBatchedTokens);
    expect(engine.pool.free).toBeGreaterThanOrEqual(0);
    this.passes.push({ prefillTokens, decodes, used: engine.pool.used });
    engine.endPass();
    expect(this.parentOf.size).toBeLessThanOrEqual(options.blocks);
  }

  run(): void {
    while (!this.engine.idle) this.pass();
    expect(this.engine.pool.used).toBe(0);
    expect(this.engine.pool.inactive).toBe(this.parentOf.size);
    expect(this.engine.pool.free).toBe(this.options.blocks - this.parentOf.size);
  }

  of(what: string): number[] {
    return this.told.filter(([kind]) => kind === what).map(([, request]) => request);
  }
}

const small: EngineOptions = { blocks: 64, blockSize: 4, maxNumBatchedTokens: 16, maxNumSeqs: 8 };
const request = (n: number, blocks: number[], inputTokens: number, outputTokens: number): EngineRequest => ({
  ...{ request: n, inputTokens, outputTokens },
  blocks: Uint32Array.from(blocks),
});

describe("one pass", () => {
  test("prompts are cut to the token budget, and decoding goes on beside them", () => {
    const bench = new Bench(small);
    bench.engine.submit(request(0, [1, 2, 3], 14, 3));
    bench.engine.submit(request(1, [5, 6], 10, 1));
    bench.run();
    expect(bench.passes).toEqual([
      { prefillTokens: 16, decodes: 0, used: 4 + 1 },
      { prefillTokens: 8, decodes: 1, used: 4 + 3 },
      { prefillTokens: 0, decodes: 1, used: 4 },
    ]);
    expect(bench.told).toEqual([
      ["admitted", 0, 0],
      ["admitted", 1, 0],
      ["token", 0],
      ["token", 0],
      ["token", 1],
      ["finished", 1],
      ["token", 0],
      ["finished", 0],
    ]);
  });

  test("a prompt cut within a block stores that block when it is full", () => {
    const bench = new Bench({ ...small, maxNumBatchedTokens: 6 });
    bench.engine.submit(request(0, [1, 2], 9, 1));
    bench.pass();
    expect([...bench.parentOf]).toEqual([[1, -1]]);
    bench.run();
    expect([...bench.parentOf]).toEqual([
      [1, -1],
      [2, 1],
    ]);
  });

  test("equal prompts share blocks; the block of the last token is computed again", () => {
    const bench = new Bench(small);
    bench.engine.submit(request(0, [1, 2], 8, 1));
    bench.run();
    bench.engine.submit(request(1, [1, 2], 8, 1));
    bench.engine.submit(request(2, [1, 2, 3], 12, 1));
    bench.run();
    expect(bench.told.filter(([what]) => what === "admitted")).toEqual([
      ["admitted", 0, 0],
      ["admitted", 1, 4],
      ["admitted", 2, 8],
    ]);
    expect(bench.passes[1]).toEqual({ prefillTokens: 4 + 4, decodes: 0, used: 3 });
  });

  test("no more than max_num_seqs run, and all wait their turn in order of arrival", () => {
    const bench = new Bench({ ...small, maxNumSeqs: 2 });
    for (let n = 0; n < 6; n++) bench.engine.submit(request(n, [], 2, 3));
    bench.run();
    expect(bench.of("admitted")).toEqual([0, 1, 2, 3, 4, 5]);
    expect(bench.of("finished")).toEqual([0, 1, 2, 3, 4, 5]);
    expect(Math.max(...bench.passes.map((pass) => pass.decodes))).toBe(2);
  });

  test("a small request does not overtake a large one that does not fit yet", () => {
    const bench = new Bench({ ...small, blocks: 4, maxNumBatchedTokens: 100 });
    bench.engine.submit(request(0, [], 9, 2));
    bench.engine.submit(request(1, [], 8, 1));
    bench.engine.submit(request(2, [], 1, 1));
    bench.run();
    expect(bench.of("admitted")).toEqual([0, 1, 2]);
    expect(bench.of("finished")).toEqual([0, 1, 2]);
  });

  test("a request that can never fit is refused, one that just fits is not", () => {
    const bench = new Bench({ ...small, blocks: 3 });
    expect(bench.engine.submit(request(0, [], 9, 5))).toBe(false);
    expect(bench.engine.idle).toBe(true);
    expect(bench.engine.submit(request(1, [], 9, 4))).toBe(true);
    bench.run();
    expect(bench.of("finished")).toEqual([1]);
  });
});

test("preemption takes the request admitted last, which keeps its tokens and recomputes them", () => {
  // Four blocks; each request needs two from its 5th token on and three from its 9th.
  const bench = new Bench({ ...small, blocks: 4 });
  bench.engine.submit(request(0, [1], 4, 8));
  bench.engine.submit(request(1, [2], 4, 8));
  bench.run();
  expect(bench.passes.map(({ prefillTokens, decodes, used }) => [prefillTokens, decodes, used])).toEqual([
    [8, 0, 2],
    ...Array.from({ length: 4 }, () => [0, 2, 4]),
    ...Array.from({ length: 3 }, () => [0, 1, 3]),
    [5, 0, 3],
    ...Array.from({ length: 2 }, () => [0, 1, 3]),
  ]);
  expect(bench.told.filter(([what]) => what !== "token")).toEqual([
    ["admitted", 0, 0],
    ["admitted", 1, 0],
    ["finished", 0],
    ["admitted", 1, 4],
    ["finished", 1],
  ]);
  expect(bench.of("token").filter((n) => n === 1)).toHaveLength(8);
});

describe.each([1n, 2n, 3n, 4n, 5n, 6n])("random work, seed %s", (seed) => {
  test("everything completes within the rules, and no block is lost", () => {
    const random = new Random(seed);
    const options = { blocks: random.between(12, 18), blockSize: 4, maxNumBatchedTokens: 24, maxNumSeqs: 5 };
    const bench = new Bench(options);
    const seen = new Set<number>();
    const wanted = new Map<number, { tokens: number; reusable: number }>();
    for (let n = 0; n < 300; n++) {
      // A prompt is a path in a tree with three children a node: block id = number of the node.
      const blocks: number[] = [];
      const depth = random.between(0, 8);
      for (let node = 0; blocks.length < depth; blocks.push(node)) node = 3 * node + 1 + random.below(3);
      const inputTokens = 4 * blocks.length + random.between(blocks.length === 0 ? 1 : 0, 3);
      const outputTokens = random.between(1, 12);
      if (bench.engine.submit(request(n, blocks, inputTokens, outputTokens))) {
        const known = blocks.findIndex((block) => !seen.has(block));
        wanted.set(n, { tokens: outputTokens, reusable: 4 * (known < 0 ? blocks.length : known) });
        for (const block of blocks) seen.add(block);
      }
      for (let i = random.below(4); i > 0 && !bench.engine.idle; i--) bench.pass();
    }
    bench.run();

    const tokens = new Map<number, number>();
    for (const n of bench.of("token")) tokens.set(n, (tokens.get(n) ?? 0) + 1);
    expect([...tokens].sort()).toEqual([...wanted].map(([n, { tokens }]) => [n, tokens]).sort());
    expect(bench.of("finished").sort()).toEqual([...wanted.keys()].sort());

    const first = new Map<number, number>();
    for (const [what, n, reused] of bench.told) if (what === "admitted" && !first.has(n)) first.set(n, reused!);
    expect([...first.keys()]).toEqual([...wanted.keys()]);
    for (const [n, reused] of first) expect(reused).toBeLessThanOrEqual(wanted.get(n)!.reusable);
    expect(bench.of("admitted").length).toBeGreaterThan(wanted.size);
  });
});
