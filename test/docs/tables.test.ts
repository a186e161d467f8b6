// The tables in the documents are those of the code. `WRITE_DOCS=1 npx vitest run test/docs/tables.test.ts` renews them.
import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { tables } from "./tables.js";

const marked = /(?<=<!-- table -->\n)[\s\S]*?(?=<!-- end of table -->)/g;

test.for(Object.entries(tables))("%s has the tables of the code", ([path, wanted]) => {
  const file = new URL(`../../${path}`, import.meta.url);
  if (process.env.WRITE_DOCS) {
    const left = [...wanted];
    writeFileSync(
      file,
      readFileSync(file, "utf8").replace(marked, () => `${left.shift()}\n`),
    );
  }
  const found = readFileSync(file, "utf8").match(marked);
  expect(found?.map((table) => table.trimEnd())).toEqual(wanted);
});

test("every field and code has a meaning in its table", () => {
  for (const table of Object.values(tables).flat()) expect(table).not.toMatch(/\| {2}\|/);
});
