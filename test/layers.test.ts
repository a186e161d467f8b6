// Who may import whom (docs/architecture.md), on the repository itself; then the checker on small faulty trees.
import { describe, expect, test } from "vitest";
import { checkAssembly, checkSource, importsOf, readTree } from "../scripts/check-layers.mjs";

describe("this repository", () => {
  test("src/ keeps to its layers, runs everywhere and has no circular import", () => {
    const files = readTree("src");
    expect(files.size).toBeGreaterThan(5);
    expect(checkSource(files)).toEqual([]);
  });

  test("assembly/ keeps to its layers and has no circular import", () => {
    const files = readTree("assembly");
    expect(files.size).toBeGreaterThan(3);
    expect(checkAssembly(files)).toEqual([]);
  });
});

test("imports are found in every form, and only there", () => {
  const text = [
    'import type { A } from "./type.js";',
    'import { type B } from "./kept.js";',
    'import "./effect.js";',
    'export * from "./re-export.js";',
    'export type { C } from "./re-type.js";',
    'let d: import("./inline.js").D;',
    'const e = await import("./dynamic.js");',
    '// import "./comment.js";',
    "const f = 'import \"./string.js\"';",
  ].join("\n");
  expect(importsOf("x.ts", text).map(({ specifier, kind, line }) => [specifier, kind, line])).toEqual([
    ["./type.js", "type", 1],
    ["./kept.js", "static", 2],
    ["./effect.js", "static", 3],
    ["./re-export.js", "static", 4],
    ["./re-type.js", "type", 5],
    ["./inline.js", "type", 6],
    ["./dynamic.js", "dynamic", 7],
  ]);
});

type Tree = Record<string, string>;
const tree = (files: Tree) => new Map(Object.entries(files));

describe("a violation in src/ is caught", () => {
  const faulty: [name: string, files: Tree, message: RegExp][] = [
    ["a lower folder imports a higher one", { "src/core/a.ts": 'import "../kernel/b.js";' }, /core imports kernel/],
    ["also when only a type", { "src/core/a.ts": 'import type { B } from "../cli/b.js";' }, /core imports cli/],
    ["also on first use", { "src/router/a.ts": 'await import("../frontend/b.js");' }, /router imports frontend/],
    ["an unknown folder", { "src/misc/a.ts": "" }, /src\/misc is no layer/],
    ["a folder imports the entry", { "src/router/a.ts": 'import "../index.js";' }, /router imports the entry/],
    [
      "the entry imports a folder with Node in it",
      { "src/index.ts": 'import "./cli/a.js";' },
      /entry index imports cli/,
    ],
    ["an import leaves src/", { "src/cli/a.ts": 'import "../../test/b.js";' }, /leaves src/],
    ["a Node built-in", { "src/kernel/a.ts": 'import "node:fs";' }, /Node built-in node:fs in/],
    ["a Node built-in without its prefix", { "src/frontend/a.ts": 'import "fs/promises";' }, /built-in fs\/promises/],
    ["a Node built-in on first use", { "src/core/a.ts": 'await import("node:os");' }, /Node built-in node:os/],
    ["a Node global", { "src/core/a.ts": "export const x = Buffer.from([]);" }, /Node global Buffer/],
    ["an unknown package", { "src/core/a.ts": 'import "undici";' }, /package undici is not known/],
    [
      "the schema library is loaded on import",
      { "src/index.ts": 'export * from "./core/a.js";', "src/core/a.ts": 'import { z } from "zod";' },
      /importing src\/index\.ts loads zod/,
    ],
    [
      "a circle",
      { "src/core/a.ts": 'import "./b.js";', "src/core/b.ts": 'import "./c.js";', "src/core/c.ts": 'import "./a.js";' },
      /circular import: src\/core\/a\.ts → src\/core\/b\.ts → src\/core\/c\.ts → src\/core\/a\.ts/,
    ],
  ];
  test.each(faulty)("%s", (_, files, message) => {
    expect(checkSource(tree(files)).join("\n")).toMatch(message);
  });
});

test("what the rules allow passes in src/", () => {
  const files = tree({
    "src/index.ts": 'export * from "./router/a.js";',
    "src/workerd.ts": 'import module from "./kernel.wasm"; export * from "./index.js";',
    "src/cli.ts": 'import "./cli/main.js";',
    "src/router/a.ts": 'import type { Z } from "zod"; import "../core/a.js"; await import("../core/yaml.js");',
    "src/core/a.ts": "export const x = { process: 1 }.process; export function f(require: number) { return require; }",
    "src/core/yaml.ts": 'import { parse } from "yaml";',
    "src/cli/main.ts": 'import "node:fs"; import "commander"; import "../index.js"; import "../core/a.js";',
  });
  expect(checkSource(files)).toEqual([]);
});

describe("a violation in assembly/ is caught", () => {
  const arena = { "assembly/memory/arena.ts": "" };
  const faulty: [name: string, files: Tree, message: RegExp][] = [
    [
      "memory imports a higher folder",
      { "assembly/memory/a.ts": 'import { x } from "../hash/b";', "assembly/hash/b.ts": "" },
      /above it/,
    ],
    [
      "a folder imports one above it",
      { "assembly/hash/a.ts": 'import { x } from "../select/b";', "assembly/select/b.ts": "" },
      /above it/,
    ],
    [
      "somebody imports index",
      { "assembly/load/a.ts": 'import { x } from "../index";', "assembly/index.ts": "" },
      /above it/,
    ],
    [
      "something from outside",
      { "assembly/hash/a.ts": 'import { x } from "../../src/core/ids";' },
      /not a file of assembly/,
    ],
    ["an unknown folder", { "assembly/misc/a.ts": "" }, /assembly\/misc is no layer/],
    [
      "a circle",
      { "assembly/load/a.ts": 'export { x } from "./b";', "assembly/load/b.ts": 'export { y } from "./a";' },
      /circular import: assembly\/load\/a\.ts → assembly\/load\/b\.ts → assembly\/load\/a\.ts/,
    ],
  ];
  test.each(faulty)("%s", (_, files, message) => {
    expect(checkAssembly(tree({ ...arena, ...files })).join("\n")).toMatch(message);
  });
});

test("what the rules allow passes in assembly/, decorators included", () => {
  const files = tree({
    "assembly/status.ts": "// @ts-ignore: decorator\n@inline export const OK: i32 = 0;",
    "assembly/memory/arena.ts": 'import { OK } from "../status";',
    "assembly/prefix/find.ts": 'import { take } from "../memory/arena"; import { hash } from "../hash/blocks";',
    "assembly/hash/blocks.ts": "",
    "assembly/index.ts": 'export { take } from "./memory/arena"; export { find } from "./prefix/find";',
  });
  expect(checkAssembly(files)).toEqual([]);
});
