// The tables of docs/plugins.md say what src/router/entry-points.ts does.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type EntryPoint, entryPoints, routerCalls } from "../../src/router/entry-points.js";

const text = readFileSync(new URL("../../docs/plugins.md", import.meta.url), "utf8");
const rows = text
  .split("\n")
  .filter((line) => line.startsWith("| `"))
  .map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );

test("every call of a router, and whether it classifies", () => {
  const calls = rows.filter(([, what]) => what === "classifies" || what === "bypasses");
  expect(Object.fromEntries(calls.map(([call, what]) => [call!.replaceAll("`", ""), what]))).toEqual(routerCalls);
});

test("every entry point that can have plugins", () => {
  const shown = rows
    .filter((cells) => cells.length === 4)
    .flatMap(([names, ...cells]) => names!.split(", ").map((name) => [name.replaceAll("`", ""), ...cells]));
  const made = Object.entries<EntryPoint>(entryPoints)
    .filter(([, { workerSelection }]) => workerSelection !== "none")
    .map(([name, row]) => [name, row.roles.join(", "), row.workerSelection, row.requestClassifier]);
  expect(shown.sort()).toEqual(made.sort());
});
