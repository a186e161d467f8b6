// The golden files are copies; where the originals are at hand, the copies must equal them byte for byte.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const copies = new URL("./golden/", import.meta.url);
const originals = new URL("../../shared/golden/", import.meta.url);
const jsonFiles = (folder: URL) => readdirSync(folder).filter((name) => name.endsWith(".json"));
const absent = existsSync(originals) ? undefined : "../shared/golden is absent, so there is nothing to compare with";

test("every original golden file has its copy", ({ skip }) => {
  skip(absent !== undefined, absent);
  expect(jsonFiles(copies)).toEqual(expect.arrayContaining(jsonFiles(originals)));
});

test.for(jsonFiles(copies))("golden/%s equals its original", (name, { skip }) => {
  skip(absent !== undefined, absent);
  const original = new URL(name, originals);
  skip(!existsSync(original), `${name} has no original`);
  expect(readFileSync(new URL(name, copies)).equals(readFileSync(original))).toBe(true);
});
