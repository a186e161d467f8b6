// The sketches' own JavaScript baselines, taken from their files and fed with this bench's data.
import { readFileSync } from "node:fs";
import type { Columns, Prompt, Weights } from "./baselines/scoring.js";
import { freshFunction } from "./harness.js";
import { sketch } from "./locate.js";
import { chain } from "./workload/chain.js";
import * as workload from "./workload/sessions.js";

/** Why a sketch cannot be run. */
export const sketchMissing = (name: string): string | undefined =>
  sketch(name) === undefined ? `needs ../shared/proto/${name}` : undefined;

function cut(text: string, from: string, to: string): string {
  const start = text.indexOf(from);
  const end = text.indexOf(to, start);
  if (start < 0 || end < 0) throw new Error(`the sketch has no part between ${from} and ${to}`);
  return text.slice(start, end);
}

export interface SketchedIndex {
  find(query: unknown): number;
  queries: unknown[];
  depths: Uint32Array;
}

/** An index of jsmap.mjs (`trie` or `big`), filled with `blocks` distinct blocks of this bench's workload. */
export function sketchedIndex(mode: "trie" | "big", blocks: number, ranks: number): SketchedIndex {
  const text = readFileSync(sketch("jsmap.mjs")!, "utf8")
    .replace("import fs from 'fs';", "")
    .replace(/const e=new WebAssembly.*?e\.reset\(W\);/, "")
    .replace("function bench(", "function ownBench(");
  const buffer = new ArrayBuffer(32768);
  const words = new Uint32Array(buffer);
  const data = {
    memory: { buffer },
    qbuf: { value: 0 },
    tailLen: workload.tailBlocks,
    nWk: workload.rankCount,
    wk: (session: number, k: number) => workload.rankOf(session, k, ranks),
    prefixOf: workload.heldTail,
    genChain(_address: number, session: number, tail: number, unknown: number): number {
      const count = workload.writeLocals(words, session, tail, unknown);
      if (mode === "big") chain(words, count, words);
      return count;
    },
  };
  const nothing = { heapUsed: 0, arrayBuffers: 0 };
  // Its loop fills to 97 % of the size it is given.
  const argv = ["", "", String((blocks - 0.5) / 0.97), mode, String(ranks)];
  let found: Omit<SketchedIndex, "depths"> | undefined;
  const depths = freshFunction(["process", "e", "bench"], `${text};return sc`)(
    { argv, memoryUsage: () => nothing },
    data,
    (_name: string, find: SketchedIndex["find"], queries: unknown[]) => {
      found = { find, queries };
    },
  ) as Uint32Array;
  if (!found) throw new Error("the sketch made no index");
  return { ...found, depths };
}

export interface SketchedTrie {
  store(rank: number, hasParent: 0, parent: 0, names: Uint32Array, locals: Uint32Array, count: number): number;
  remove(rank: number, names: Uint32Array, count: number): void;
  find(locals: Uint32Array, count: number): number;
  sc: Uint32Array;
}

/** The class of the trie with name maps of lane-bench.mjs. */
export function sketchedTrie(): new (ranks: number) => SketchedTrie {
  const text = readFileSync(sketch("lane-bench.mjs")!, "utf8");
  const key = cut(text, "const key=", "\n");
  const trie = cut(text, "class JS{", "\nconst u32");
  return freshFunction([], `${key};return ${trie}`)() as new (
    ranks: number,
  ) => SketchedTrie;
}

export interface SketchedScoring {
  argmin(prompt: Prompt): number;
  softmax(prompt: Prompt, temperature: number): number;
  cost(prompt: Prompt, row: number): number;
}

/** The loops of b3.mjs, whose schematic cost is replaced by the exact one, since no ratio rests on another. */
export function sketchedScoring(columns: Columns, weights: Weights, draw: () => number): SketchedScoring {
  const text = readFileSync(sketch("b3.mjs")!, "utf8");
  const schematic = "ow*(pf[i]+isl-ov[i])+dc[i]";
  const exact = "scale*Math.max(0,(pf[i]+Math.max(0,tokens-ov[i]*bs)+ov[i]*bs)/bs-credit*ov[i])+(dc[i]+(blocks-ac[i]))";
  const lowest = cut(text, "function js(", "\n");
  if (!lowest.includes(schematic)) throw new Error("the sketch's cost is another one");
  const sampled = cut(text, "function jsSoft(", "\n").replace("Math.random()", "draw()");
  const rows = columns.prefill.length;
  return freshFunction(
    ["pf, dc, ov, ac, bs, credit, scale, rows, draw"],
    `let tokens = 0, blocks = 0;
    const jl = new Float64Array(rows), jo = new Float64Array(rows);
    ${lowest.replace(schematic, exact)}
    ${sampled}
    const take = (prompt) => { tokens = prompt.tokens; blocks = prompt.blocks; };
    const cost = (i) => ${exact};
    return {
      argmin(prompt) { take(prompt); return js(rows, 1, 0); },
      softmax(prompt, temperature) {
        take(prompt);
        for (let i = 0; i < rows; i++) jl[i] = ${exact};
        return jsSoft(rows, temperature);
      },
      cost(prompt, row) { take(prompt); return cost(row); },
    };`,
  )(
    columns.prefill,
    columns.decode,
    columns.device,
    columns.active,
    weights.blockSize,
    weights.overlapCredit,
    weights.prefillScale,
    rows,
    draw,
  ) as SketchedScoring;
}
