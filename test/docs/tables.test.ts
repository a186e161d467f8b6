// The tables in the documents are those of the code. `WRITE_DOCS=1 npx vitest run test/docs/tables.test.ts` renews them.
import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { tables } from "./tables.js";

const marked = /(?<=<!-- table -->\n)[\s\S]*?(?=<!-- end of table -->)/;

test.for(Object.entries(tables))("%s has the table of the code", ([path, make]) => {
  const file = new URL(`../../${path}`, import.meta.url);
  const text = readFileSync(file, "utf8");
  if (process.env.WRITE_DOCS)
    writeFileSync(
      file,
      text.replace(marked, () => `${make()}\n`),
    );
  expect(marked.exec(readFileSync(file, "utf8"))?.[0].trimEnd()).toBe(make());
});

test("every field and code has a meaning in its table", () => {
  for (const make of Object.values(tables)) expect(make()).not.toMatch(/\| {2}\|/);
});
