// Hashing 32,768 tokens in one call, against libxxhash and against an npm package called once a block.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { compare, median, passesFor, type Round, ratio, type Side, timed, warmUp } from "../harness.js";
import { Pool } from "../kernel.js";
import { sketch } from "../locate.js";
import { compile, Native, nativeMissing } from "../native.js";
import { baselineRow, measure, type Row, type Run, roundsOf, type Suite } from "../rows.js";
import { sketchMissing } from "../sketches.js";
import { hex, wordSum } from "../workload/checksum.js";
import { mix32 } from "../workload/mix.js";

const TOKENS = 32768;
const SEED = 1337n;
const ROUND_MS = 5;
const BLOCK_SIZES = [16, 32, 64] as const;

const native = "native libxxhash, gcc -O3";
const higher = { better: "higher", statistic: "min" } as const;
const localRow = (block: number, target: number, aim: number): Row => ({
  name: `hash/locals-b${block}`,
  of: native,
  against: `kernel, ${TOKENS} tokens in blocks of ${block}`,
  ...higher,
  target,
  aim,
});

export const hashTokens = (): Uint32Array => Uint32Array.from({ length: TOKENS }, (_, i) => mix32(i + 12345) % 128000);

/** The kernel's hashing of the tokens, which lie in its memory. */
class Hasher {
  private readonly pool = new Pool({ ranks: 1 });
  private readonly tokens = this.pool.put(hashTokens());
  private readonly locals = this.pool.take(TOKENS * 4);
  private readonly sequences = this.pool.take(TOKENS * 4);

  side(verb: "localBlocks" | "hashBlocks", block: number): Side {
    const { pool, tokens, locals, sequences } = this;
    const hash = pool.exports[verb];
    const pass = () => hash(tokens, TOKENS, block, block, SEED, locals, sequences);
    const words = (2 * TOKENS) / block;
    const check = () => {
      pass();
      const sum = wordSum(pool.read(locals, words));
      return hex(verb === "localBlocks" ? sum : sum ^ wordSum(pool.read(sequences, words)));
    };
    warmUp(2000, 1, pass);
    const passes = passesFor(ROUND_MS, pass);
    return { name: "kernel", round: () => timed(1, passes, pass, check) };
  }
}

/** hash-wasm's XXH3, fed and digested once a block. */
async function hashWasmSide(block: number): Promise<Side> {
  const { createXXHash3 } = await import("hash-wasm");
  const hasher = await createXXHash3(Number(SEED), 0);
  const bytes = new Uint8Array(hashTokens().buffer);
  const blocks = Array.from({ length: TOKENS / block }, (_, i) => bytes.subarray(4 * block * i, 4 * block * (i + 1)));
  const digest = (data: Uint8Array) => hasher.init().update(data).digest("binary");
  const pass = () => {
    let last = 0;
    for (const data of blocks) last ^= digest(data)[7]!;
    return last;
  };
  const check = () => {
    // A digest is big-endian; the kernel's hashes are two little-endian words.
    const words = new Uint32Array(2 * blocks.length);
    const view = new DataView(words.buffer);
    for (const [i, data] of blocks.entries()) {
      const digested = digest(data);
      view.setBigUint64(8 * i, new DataView(digested.buffer, digested.byteOffset).getBigUint64(0), true);
    }
    return hex(wordSum(words));
  };
  warmUp(100_000, blocks.length, pass);
  const passes = passesFor(ROUND_MS, pass);
  return { name: "hash-wasm", round: () => timed(1, passes, pass, check) };
}

/** Runs of the sketch's own program on the same tokens: nanoseconds by the label of its lines. */
function sketchedHashes(): () => Map<string, number> {
  const source = sketch("xx.c")!;
  // Its input comes from rand(), one byte a call: give it the bytes of our tokens.
  const header = join(dirname(compile("hash.c")), "tokens.h");
  writeFileSync(
    header,
    `#include <stdint.h>\n#include <stdlib.h>
static uint32_t mixed(uint32_t x) { x = (x ^ x >> 16) * 0x85ebca6bu; x = (x ^ x >> 13) * 0xc2b2ae35u; return x ^ x >> 16; }
static int token_byte(void) { static uint32_t i; uint32_t token = mixed(i / 4 + 12345) % 128000; return token >> 8 * (i++ % 4) & 255; }
#define rand token_byte\n`,
  );
  const program = compile(source, ["-include", header]);
  return () => {
    const text = execFileSync(program, { encoding: "utf8" });
    return new Map([...text.matchAll(/^native (\S+) (\d+) ns/gm)].map((match) => [match[1]!, Number(match[2])]));
  };
}

/** Our native loops, and what the sketch's program calls its own. */
const loops = [
  { name: "hash-b16", label: "local64", verb: "locals", block: 16 },
  { name: "hash-b32", label: "local128", verb: "locals", block: 32 },
  { name: "hash-b64", label: "local256", verb: "locals", block: 64 },
  { name: "hash-fused-b16", label: "fused64x2048", verb: "fused", block: 16 },
] as const;

/** Of the sketch's method: the median of 31 samples of 20 repetitions. */
const SKETCH_SAMPLES = 31;
const SKETCH_REPETITIONS = 20;

/** Our native loops ÷ the sketch's, timed as it times itself. It prints no hashes, so that no answers are compared. */
async function baselines(run: Run, child: Native): Promise<void> {
  const wanted = loops.filter(({ name }) => run.wants(`baseline/${name}`));
  if (wanted.length === 0) return;
  const missing = sketchMissing("xx.c");
  if (missing) {
    for (const { name } of wanted) run.report(`baseline/${name}`, { skipped: missing });
    return;
  }
  const sketched = sketchedHashes();
  const rounds = wanted.map((loop) => ({ ...loop, ours: [] as Round[], theirs: [] as Round[] }));
  for (let i = 0; i < roundsOf(run, 9); i++) {
    const printed = sketched();
    for (const { label, verb, block, ours, theirs } of rounds) {
      const samples: number[] = [];
      for (let k = 0; k < SKETCH_SAMPLES; k++) {
        samples.push((await child.round(verb, block, SKETCH_REPETITIONS)).nanoseconds);
      }
      ours.push({ nanoseconds: median(samples), sum: "" });
      theirs.push({ nanoseconds: printed.get(label)!, sum: "" });
    }
  }
  for (const { name, ours, theirs } of rounds) run.report(`baseline/${name}`, ratio(ours, theirs, "median"));
}

async function nativeRows(run: Run, hasher: () => Hasher): Promise<void> {
  const missing = nativeMissing("xxhash.h");
  const names = [...BLOCK_SIZES.map((block) => `hash/locals-b${block}`), "hash/fused-b16"];
  if (missing) {
    const all = [...names, ...loops.map(({ name }) => `baseline/${name}`)];
    for (const name of all) run.report(name, { skipped: missing });
    return;
  }
  const child = await Native.start(compile("hash.c"));
  try {
    for (const block of BLOCK_SIZES) {
      await measure(run, `hash/locals-b${block}`, async () =>
        compare(
          await child.side("libxxhash", "locals", block, 1, ROUND_MS),
          hasher().side("localBlocks", block),
          roundsOf(run, 61),
          "min",
        ),
      );
    }
    await measure(run, "hash/fused-b16", async () =>
      compare(
        await child.side("libxxhash", "fused", 16, 1, ROUND_MS),
        hasher().side("hashBlocks", 16),
        roundsOf(run, 61),
        "min",
      ),
    );
    await baselines(run, child);
  } finally {
    child.stop();
  }
}

export const hashSuite: Suite = {
  rows: [
    localRow(16, 0.54, 0.7),
    localRow(32, 0.4, 0.6),
    localRow(64, 0.75, 0.95),
    {
      name: "hash/fused-b16",
      of: `${native}, block and sequence hashes in one pass`,
      against: "kernel, the same",
      ...higher,
      target: 0.5,
      aim: 0.75,
    },
    {
      name: "hash/hash-wasm-b16",
      of: "npm hash-wasm, one call a block",
      against: "kernel, one call",
      ...higher,
      target: 40,
      aim: 60,
    },
    ...loops.map(({ name }) => baselineRow(name, "our native loop", "xx.c")),
  ],
  async run(run) {
    let made: Hasher | undefined;
    const hasher = () => {
      made ??= new Hasher();
      return made;
    };
    await nativeRows(run, hasher);
    await measure(run, "hash/hash-wasm-b16", async () => {
      const theirs = await hashWasmSide(16).catch(() => undefined);
      if (!theirs) return { skipped: "needs the npm package hash-wasm" };
      return compare(theirs, hasher().side("localBlocks", 16), roundsOf(run, 61), "min");
    });
  },
};
