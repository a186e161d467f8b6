import { describe, expect, it } from "vitest";
import { runBench } from "../../bench/main.js";
import { nativeMissing } from "../../bench/native.js";
import type { Result } from "../../bench/rows.js";

interface Document {
  machine: Record<string, string | number>;
  results: Result[];
}

async function json(only: string[]): Promise<{ code: number; document: Document }> {
  let text = "";
  const code = await runBench({ only, json: true, quick: true }, (part) => {
    text += part;
  });
  return { code, document: JSON.parse(text) as Document };
}

describe("warmroute bench", () => {
  it("prints one document, without the names it does not know", async () => {
    const { code, document } = await json(["kernel/size", "no/such-row"]);
    expect(code).toBe(0);
    expect(Object.keys(document)).toEqual(["machine", "results"]);
    expect(document.machine).toMatchObject({ node: process.version, arch: process.arch });
    const [row] = document.results;
    expect(document.results).toHaveLength(1);
    expect(row).toMatchObject({
      name: "kernel/size",
      better: "lower",
      statistic: "median",
      target: 20_000,
      aim: 10_000,
    });
    expect(row!.samples).toEqual([row!.ratio]);
    expect(row!.ratio).toBeGreaterThan(1000);
  });

  it("says which names it does not know", async () => {
    let told = "";
    const names = ["nope", "kernel/size", "kernel/sise"];
    const warn = (text: string) => {
      told += text;
    };
    expect(await runBench({ only: names, quick: true }, () => {}, warn)).toBe(0);
    expect(told).toBe("unknown row nope is left out\nunknown row kernel/sise is left out; did you mean kernel/size?\n");
  });

  it("prints a table", async () => {
    let text = "";
    expect(
      await runBench({ only: ["kernel/size"], quick: true }, (part) => {
        text += part;
      }),
    ).toBe(0);
    expect(text.split("\n")[0]).toMatch(/^row +ratio +target \(aim\) +verdict/);
    expect(text.split("\n")[1]).toMatch(/^kernel\/size +\d+ +≤ 20000 \(10000\)/);
  });

  it("finds the same answers in the kernel and in JavaScript", async () => {
    const names = ["index/lookup-trie", "index/store", "index/remove", "select/argmin-512", "select/softmax-512"];
    const { code, document } = await json(names);
    expect(document.results.filter((row) => row.error !== undefined)).toEqual([]);
    expect(code).toBe(0);
    expect(document.results.map((row) => row.name).sort()).toEqual([...names].sort());
    for (const row of document.results) expect(row.samples.length).toBeGreaterThanOrEqual(3);
  });

  it.skipIf(nativeMissing("xxhash.h"))("finds the same answers in native code", async () => {
    const { document } = await json([
      "hash/locals-b16",
      "hash/locals-b32",
      "hash/locals-b64",
      "hash/fused-b16",
      "index/lookup-native-flat",
    ]);
    expect(document.results.filter((row) => row.error !== undefined)).toEqual([]);
    expect(document.results).toHaveLength(5);
  });
});
