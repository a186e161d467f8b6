import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { needsProgram } from "../../tools.js";
import { instantiateEntry } from "../compile.js";
import { COUNTING_BLOCKS, COUNTING_BYTES, COUNTING_TOKENS, FOUR_TOKEN_BLOCKS, SEEDED } from "./vectors.js";

interface Exports {
  memory: WebAssembly.Memory;
  xxh3_64(p: number, len: number, seed: bigint): bigint;
  hashBlocks: Blocks;
  localBlocks: Blocks;
  chainBlocks(locals: number, n: number, seqs: number, hasParent: boolean, parent: bigint): void;
  chainStep(prev: bigint, local: bigint): bigint;
  hashBlockWithMedia(p: number, blockSize: number, media: number, n: number, seed: bigint, scratch: number): bigint;
  padToken(mediaHash: bigint): number;
  mediaId(p: number, len: number): bigint;
  localSeed(lora: number, loraLen: number, salt: number, saltLen: number): bigint;
}
type Blocks = (
  tokens: number,
  count: number,
  blockSize: number,
  window: number,
  seed: bigint,
  locals: number,
  seqs: number,
) => number;

const PAGE = 65536;
const LOW = PAGE;
const HIGH = 2 ** 31 + PAGE;
const TOP = 2 ** 32;
const BASE = 1337n;

let k: Exports;
let memory: Uint8Array;

beforeAll(() => {
  k = instantiateEntry<Exports>("hash");
  k.memory.grow(65536 - k.memory.buffer.byteLength / PAGE);
  memory = new Uint8Array(k.memory.buffer);
});

const u64 = (x: bigint) => BigInt.asUintN(64, x);
const range = (n: number, from = 0) => Array.from({ length: n }, (_, i) => from + i);

function putBytes(p: number, bytes: ArrayLike<number>): number {
  memory.set(bytes, p);
  return bytes.length;
}

function putText(p: number, text: string): number {
  return putBytes(p, new TextEncoder().encode(text));
}

function putTokens(p: number, tokens: readonly number[]): void {
  putBytes(p, new Uint8Array(Uint32Array.from(tokens).buffer));
}

function putWords(p: number, words: readonly bigint[]): void {
  putBytes(p, new Uint8Array(BigUint64Array.from(words).buffer));
}

function words(p: number, n: number): bigint[] {
  return [...new BigUint64Array(memory.slice(p, p + 8 * n).buffer)];
}

/** The numerical recipe the tables of `xxh3-lengths.tsv` and the native program are made with. */
function recipeBytes(n: number): Uint8Array {
  let x = 1;
  return Uint8Array.from({ length: n }, () => {
    x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
    return x >>> 24;
  });
}

function hash(tokens: readonly number[], blockSize: number, seed = BASE, window = blockSize, at = LOW) {
  const locals = at + PAGE * 8;
  const seqs = at + PAGE * 12;
  putTokens(at, tokens);
  const n = k.hashBlocks(at, tokens.length, blockSize, window, seed, locals, seqs);
  return { n, locals: words(locals, n), seqs: words(seqs, n) };
}

describe("XXH3-64", () => {
  test.each(COUNTING_BYTES)("%i bytes counting up, three seeds", (length, zero, base, max) => {
    putBytes(LOW, range(length));
    expect([0n, BASE, -1n].map((seed) => u64(k.xxh3_64(LOW, length, seed)))).toEqual([zero, base, max]);
  });

  test.each(COUNTING_TOKENS)("%i tokens counting up", (n, expected) => {
    putTokens(LOW, range(n));
    expect(u64(k.xxh3_64(LOW, 4 * n, BASE))).toBe(expected);
  });

  test("the text of the router-event test, and seed 0 over 64 tokens", () => {
    const length = putText(LOW, "test data");
    expect(u64(k.xxh3_64(LOW, length, BASE))).toBe(13226331709069118873n);
    putTokens(LOW, range(64));
    expect(u64(k.xxh3_64(LOW, 256, 0n))).toBe(12023766320149852431n);
  });

  test("a hash is read as i64 or u64 bit for bit", () => {
    putTokens(LOW, range(4, 1));
    expect(k.xxh3_64(LOW, 16, BASE)).toBe(-3803038269031200164n);
    expect(u64(-3803038269031200164n)).toBe(14643705804678351452n);
  });

  test("names before they seed a block: an adapter with seed 0, a salt with seed 1", () => {
    expect(u64(k.xxh3_64(LOW, putText(LOW, "adapter-a"), 0n))).toBe(8842669519798866845n);
    expect(u64(k.xxh3_64(LOW, putText(LOW, "tenant-a"), 1n))).toBe(1948188790972762749n);
  });

  test("26 bytes: two slots of 13 bytes, text token 1 and media 0xabc at offset 0", () => {
    const slots = new DataView(memory.buffer, LOW, 26);
    slots.setUint8(0, 0);
    slots.setUint32(1, 1, true);
    slots.setBigUint64(5, 0n, true);
    slots.setUint8(13, 1);
    slots.setUint32(14, 0, true);
    slots.setBigUint64(18, 0xabcn, true);
    expect(u64(k.xxh3_64(LOW, 26, BASE))).toBe(13857325393455726937n);
  });

  test("every length up to 288 and the edges of the long path, unaligned, below and above 2 GiB", () => {
    const lines = readFileSync(new URL("xxh3-lengths.tsv", import.meta.url), "utf8")
      .trim()
      .split("\n")
      .slice(1);
    const bytes = recipeBytes(5000);
    for (const at of [LOW, LOW + 1, HIGH + 3, TOP - 5000]) {
      putBytes(at, bytes);
      for (const line of lines) {
        const [length, seed, expected] = line.split("\t") as [string, string, string];
        const got = u64(k.xxh3_64(at, Number(length), BigInt(seed)));
        expect(`${at} ${length} ${seed} ${got}`).toBe(`${at} ${length} ${seed} ${expected}`);
      }
    }
  });

  test("every length up to 1,100 against the native library", (context) => {
    needsProgram("gcc", context.skip);
    const dir = mkdtempSync(join(tmpdir(), "warmroute-xxh3-"));
    try {
      writeFileSync(join(dir, "dump.c"), NATIVE);
      try {
        execFileSync("gcc", ["-O1", "-o", "dump", "dump.c"], { cwd: dir, stdio: "ignore" });
      } catch (error) {
        if (process.env.CI) throw error; // CI installs the library's header
        context.skip("xxhash.h is not installed (Debian: libxxhash-dev)");
      }
      const lines = execFileSync(join(dir, "dump"), { encoding: "utf8" }).trim().split("\n");
      expect(lines.length).toBe(3 * 1101);
      putBytes(LOW, recipeBytes(1100));
      for (const line of lines) {
        const [length, seed] = line.split(" ") as [string, string];
        expect(`${length} ${seed} ${u64(k.xxh3_64(LOW, Number(length), BigInt(seed)))}`).toBe(line);
      }
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});

const NATIVE = `
#define XXH_INLINE_ALL
#include <xxhash.h>
#include <stdio.h>
int main(void) {
  static unsigned char bytes[1100];
  static const unsigned long long seeds[] = {0, 1337, 0xfedcba9876543210ULL};
  unsigned x = 1;
  for (int i = 0; i < 1100; i++) bytes[i] = (x = x * 1664525u + 1013904223u) >> 24;
  for (int s = 0; s < 3; s++)
    for (int n = 0; n <= 1100; n++)
      printf("%d %llu %llu\\n", n, seeds[s], (unsigned long long)XXH3_64bits_withSeed(bytes, n, seeds[s]));
}
`;

describe("block and sequence hashes", () => {
  test("golden prompts", () => {
    const cases = JSON.parse(readFileSync(new URL("../../golden/hashes.json", import.meta.url), "utf8")) as {
      tokens: number[];
      block_size: number;
      seed: string;
      block_hashes: string[];
      sequence_hashes: string[];
    }[];
    expect(cases.length).toBeGreaterThan(10);
    for (const c of cases) {
      expect(hash(c.tokens, c.block_size, BigInt(c.seed))).toEqual({
        n: c.block_hashes.length,
        locals: c.block_hashes.map(BigInt),
        seqs: c.sequence_hashes.map(BigInt),
      });
    }
  });

  test.each(FOUR_TOKEN_BLOCKS)("blocks of four tokens, seed %s", (seed, locals) => {
    expect(hash(range(12, 1), 4, seed).locals).toEqual(locals);
  });

  test("chain of the blocks of four tokens; the chain keeps seed 1337", () => {
    expect(hash(range(12, 1), 4).seqs).toEqual([14643705804678351452n, 4945711292740353085n, 12583592247330656132n]);
    expect(hash(range(8, 1), 4, 12345n).seqs[1]).toBe(1764876279505441449n);
  });

  test.each([
    [0n, 0n, [8052976908588476977n, 4185132130981121146n, 9410009423372290283n]],
    [12345n, 12345n, [2043797638476133447n, 2317256538737089830n, 15952273579699943250n]],
    [BASE, 0n, [14643705804678351452n, 13257339816715102022n]],
  ])("blocks with seed %s chained by XXH3 with seed %s", (seed, chainSeed, expected) => {
    const { locals } = hash(range(12, 1), 4, seed);
    const seqs = [locals[0]!];
    for (let i = 1; i < expected.length; i++) {
      putWords(LOW, [seqs[i - 1]!, locals[i]!]);
      seqs.push(u64(k.xxh3_64(LOW, 16, chainSeed)));
    }
    expect(seqs).toEqual(expected);
  });

  test.each(COUNTING_BLOCKS)("three blocks of %i tokens", (blockSize, locals, seqs) => {
    expect(hash(range(3 * blockSize), blockSize)).toEqual({ n: 3, locals, seqs });
  });

  test("pair windows overlap by one token", () => {
    const expected = [11646242937812223497n, 9948816348502404300n];
    const got = hash(range(6), 2, BASE, 3);
    expect(got).toEqual({ n: 2, locals: expected, seqs: [expected[0], 16579128339329071142n] });
  });

  test.each([
    [0, 16, 16, 0],
    [15, 16, 16, 0],
    [16, 16, 16, 1],
    [47, 16, 16, 2],
    [16, 16, 17, 0],
    [17, 16, 17, 1],
    [33, 16, 17, 2],
    [5, 1, 1, 5],
    [5, 1, 2, 4],
    [5, 0, 0, 0],
    [5, 0, 1, 0],
    [5, 2, 1, 0],
  ])("%i tokens, block size %i, window %i: %i blocks", (count, blockSize, window, blocks) => {
    putTokens(LOW, range(count));
    const out = [LOW + PAGE, LOW + 2 * PAGE] as const;
    expect(k.hashBlocks(LOW, count, blockSize, window, BASE, ...out)).toBe(blocks);
    expect(k.localBlocks(LOW, count, blockSize, window, BASE, out[0], 0)).toBe(blocks);
  });

  // The generic answer block by block: XXH3 of the window, then of (previous, local).
  function generic(at: number, n: number, blockSize: number, window: number, seed: bigint) {
    const pair = LOW + PAGE * 16;
    const locals: bigint[] = [];
    const seqs: bigint[] = [];
    for (let i = 0; i < n; i++) {
      const local = u64(k.xxh3_64(at + 4 * blockSize * i, 4 * window, seed));
      putWords(pair, [seqs[i - 1] ?? 0n, local]);
      locals.push(local);
      seqs.push(i ? u64(k.xxh3_64(pair, 16, BASE)) : local);
    }
    return { locals, seqs };
  }

  const shapes = [1, 2, 4, 5, 8, 16, 24, 32, 33, 60, 61, 64, 100, 128, 256].flatMap((size) => [
    [size, size] as const,
    [size, size + 1] as const,
  ]);
  test.each(shapes)("block size %i, window %i: every count, seed and place", (blockSize, window) => {
    const bytes = recipeBytes(4 * (14 * blockSize + 1));
    for (const at of [LOW, LOW + 2, HIGH]) {
      putBytes(at, bytes);
      for (const seed of [BASE, 0n, 0xfedcba9876543210n, BASE]) {
        for (const n of [0, 1, 2, 3, 4, 5, 6, 7, 14]) {
          const count = n ? (n - 1) * blockSize + window : 0;
          const expected = generic(at, n, blockSize, window, seed);
          const locals = at + PAGE * 8 + 4;
          const seqs = at + PAGE * 12;
          memory.fill(0xaa, locals, locals + 8 * n + 8);
          memory.fill(0xaa, seqs, seqs + 8 * n + 8);
          expect(k.hashBlocks(at, count, blockSize, window, seed, locals, seqs)).toBe(n);
          expect(words(locals, n + 1)).toEqual([...expected.locals, 0xaaaaaaaaaaaaaaaan]);
          expect(words(seqs, n + 1)).toEqual([...expected.seqs, 0xaaaaaaaaaaaaaaaan]);

          memory.fill(0xaa, locals, locals + 8 * n + 8);
          expect(k.localBlocks(at, count, blockSize, window, seed, locals, 0)).toBe(n);
          expect(words(locals, n + 1)).toEqual([...expected.locals, 0xaaaaaaaaaaaaaaaan]);
        }
      }
    }
  });

  test.each([4, 16, 32, 64])("block size %i: sequence hashes alone, local hashes alone", (blockSize) => {
    const at = LOW;
    putBytes(at, recipeBytes(4 * 9 * blockSize));
    const expected = generic(at, 9, blockSize, blockSize, BASE);
    const out = LOW + PAGE * 8;
    expect(k.hashBlocks(at, 9 * blockSize, blockSize, blockSize, BASE, 0, out)).toBe(9);
    expect(words(out, 9)).toEqual(expected.seqs);
    expect(k.hashBlocks(at, 9 * blockSize, blockSize, blockSize, BASE, out, 0)).toBe(9);
    expect(words(out, 9)).toEqual(expected.locals);
  });

  test.each([16, 32, 64, 20])("block size %i: tokens and results end at the last byte of 4 GiB", (blockSize) => {
    for (const n of [3, 4, 9]) {
      const bytes = recipeBytes(4 * n * blockSize);
      putBytes(LOW, bytes);
      const expected = generic(LOW, n, blockSize, blockSize, BASE);
      const tokens = TOP - bytes.length;
      putBytes(tokens, bytes);
      k.hashBlocks(tokens, n * blockSize, blockSize, blockSize, BASE, LOW + PAGE, LOW + 2 * PAGE);
      expect([words(LOW + PAGE, n), words(LOW + 2 * PAGE, n)]).toEqual([expected.locals, expected.seqs]);
      const out = TOP - 8 * n;
      k.hashBlocks(LOW, n * blockSize, blockSize, blockSize, BASE, out, LOW + PAGE);
      expect(words(out, n)).toEqual(expected.locals);
      k.hashBlocks(LOW, n * blockSize, blockSize, blockSize, BASE, 0, out);
      expect(words(out, n)).toEqual(expected.seqs);
    }
  });

  test("a chain continues from a parent, in place too", () => {
    const [, locals, seqs] = COUNTING_BLOCKS[0]!;
    putWords(LOW, locals);
    k.chainBlocks(LOW, 3, LOW + 64, false, 0n);
    expect(words(LOW + 64, 3)).toEqual(seqs);
    putWords(LOW, locals.slice(1));
    k.chainBlocks(LOW, 2, LOW, true, seqs[0]!);
    expect(words(LOW, 2)).toEqual(seqs.slice(1));
    k.chainBlocks(LOW, 0, LOW, true, 1n);
    expect(words(LOW, 2)).toEqual(seqs.slice(1));
    expect(u64(k.chainStep(seqs[1]!, locals[2]!))).toBe(seqs[2]);
  });
});

describe("LoRA names and salts", () => {
  test.each(SEEDED)("lora %j, salt %j", (lora, salt, seed, locals, seq) => {
    const loraLength = putText(LOW, lora);
    const saltLength = putText(LOW + 256, salt);
    const got = u64(k.localSeed(LOW, loraLength, LOW + 256, saltLength));
    expect(got).toBe(seed);
    expect(hash(range(8, 1), 4, got)).toEqual({ n: 2, locals, seqs: [locals[0], seq] });
  });

  test("an equal name and salt differ", () => {
    putText(LOW, "x");
    const lora = k.localSeed(LOW, 1, 0, 0);
    const salt = k.localSeed(0, 0, LOW, 1);
    expect(hash(range(4, 1), 4, lora).locals).toEqual([5621237061398796446n]);
    expect(hash(range(4, 1), 4, salt).locals).toEqual([3662567837465702574n]);
  });
});

describe("media", () => {
  test.each([
    [[], 14643705804678351452n],
    [[42n], 14000361058806882387n],
    [[42n, 7n], 6295130183325757331n],
    [[7n, 42n], 6295130183325757331n],
  ])("media hashes [%s] after tokens 1 to 4", (media, expected) => {
    for (const at of [LOW, HIGH]) {
      putTokens(at, range(4, 1));
      putWords(at + 64, media);
      expect(u64(k.hashBlockWithMedia(at, 4, at + 64, media.length, BASE, at + 128))).toBe(expected);
      expect(words(at + 64, media.length)).toEqual(media);
    }
  });

  test("media hashes in the order of the prompt would give another hash", () => {
    putTokens(LOW, range(4, 1));
    putWords(LOW + 16, [42n, 7n]);
    expect(u64(k.xxh3_64(LOW, 32, BASE))).toBe(17892095865638716667n);
  });

  test("order is unsigned", () => {
    const media = [1n << 63n, 5n, 0n, (1n << 64n) - 1n];
    putTokens(LOW, range(4, 1));
    putWords(LOW + 16, [0n, 5n, 1n << 63n, (1n << 64n) - 1n]);
    const expected = k.xxh3_64(LOW, 48, BASE);
    putWords(LOW + 64, media);
    expect(k.hashBlockWithMedia(LOW, 4, LOW + 64, 4, BASE, LOW + 128)).toBe(expected);
  });

  test.each([
    [0n, 1_000_000],
    [(1n << 30n) | 0xcafen, 1_051_966],
    [0x0123456789abcdefn, 163_254_319],
    [(1n << 64n) - 1n, 1_000_000 + 2 ** 30 - 1],
  ])("pad token of %s", (mediaHash, expected) => {
    expect(k.padToken(mediaHash)).toBe(expected);
  });

  test.each([
    ["0123456789abcdef".repeat(4), 0x0123456789abcdefn],
    ["0123456789ABCDEF".repeat(4), 0x0123456789abcdefn],
    ["34fb5c825de7ca4a".padEnd(64, "0"), 0x34fb5c825de7ca4an],
    ["f".repeat(64), (1n << 64n) - 1n],
    ["image-1", 9764656481613128169n],
  ])("media identifier %s", (text, expected) => {
    expect(u64(k.mediaId(LOW, putText(LOW, text)))).toBe(expected);
  });

  test.each(["g", "G", "/", ":", "@", "`"])("64 characters with one %s are no hex digits", (stray) => {
    for (const at of [0, 40, 63]) {
      const text = `${"1".repeat(at)}${stray}${"1".repeat(63 - at)}`;
      const length = putText(LOW, text);
      expect(k.mediaId(LOW, length)).toBe(k.xxh3_64(LOW, 64, 0n));
    }
  });
});
