// Every command and every piece of code in README.md and docs/ is run, and prints what the document shows.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { needsProgram } from "../tools.js";
import { type Block, blocksOf, documents, matches } from "./blocks.js";
import { Sandbox } from "./sandbox.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const code = ["ts", "js"];
const shown = ["text", "json", "yaml"];
const INSTALL = "npm install && ";

/** Runs one block; the answer is what it printed, undefined for blocks that do not run. */
async function runBlock(sandbox: Sandbox, { language, words, text }: Block): Promise<string | undefined> {
  const file = words.find((word) => word.startsWith("file="))?.slice("file=".length);
  if (file) sandbox.write(file, text);
  else if (code.includes(language)) return await sandbox.module(text);
  else if (language !== "sh") expect(shown).toContain(language);
  else if (text === `${INSTALL}npm start`) return await sandbox.start("npm start", root);
  else if (text === `${INSTALL}npm test`) expect(readFileSync(`${root}.ci/run`, "utf8")).toContain(`'${text}'`);
  else if (words.includes("background")) return await sandbox.start(text);
  else return await sandbox.shell(text);
  return undefined;
}

describe.each(documents())("%s", (document) => {
  const blocks = blocksOf(document);
  let sandbox: Sandbox;
  beforeAll(() => {
    sandbox = new Sandbox();
  });
  afterAll(() => sandbox.stop());

  blocks.forEach((block, i) => {
    if (block.words.includes("output")) return;
    test(`line ${block.line}: ${block.text.split("\n")[0]}`, async ({ skip }) => {
      if (block.language === "sh" && /\bcurl\b/.test(block.text)) needsProgram("curl", skip);
      const printed = await runBlock(sandbox, block);
      const next = blocks[i + 1];
      if (!next?.words.includes("output")) return;
      expect(printed).toBeDefined();
      if (!matches(printed ?? "", next.text)) expect(printed).toBe(next.text);
    });
  });

  test("links lead to files of the repository", () => {
    const text = readFileSync(join(root, document), "utf8");
    const base = new URL(document, `file://${root}/`);
    for (const [, target = ""] of text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)) {
      expect(() => readFileSync(new URL(target, base)), target).not.toThrow(/ENOENT/);
    }
  });
});

test("TypeScript in the documents type-checks against the built package", () => {
  const folder = mkdtempSync(join(tmpdir(), "warmroute-types-"));
  try {
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(root, join(folder, "node_modules/warmroute"));
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    const files = documents()
      .flatMap((document) => blocksOf(document).map((block) => ({ document, block })))
      .filter(({ block }) => block.language === "ts")
      .map(({ document, block }) => {
        const name = `${document.replace(/\W/g, "-")}-${block.line}.ts`;
        writeFileSync(join(folder, name), `${block.text}\nexport {};\n`);
        return name;
      });
    expect(files.length).toBeGreaterThan(0);
    const compilerOptions = {
      ...{ noEmit: true, strict: true, skipLibCheck: false, module: "nodenext", target: "es2022", types: [] },
      lib: ["es2022", "dom", "dom.iterable"],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    try {
      execFileSync(process.execPath, [tsc], { cwd: folder, encoding: "utf8" });
    } catch (error) {
      expect.fail((error as { stdout: string }).stdout);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("what a document shows is compared line by line, with … for anything", () => {
  expect(matches("a\nb 1.5 ms\nc\n", "a\nb … ms\nc")).toBe(true);
  expect(matches("a\nb\nc\nd\n", "a\n…\nd")).toBe(true);
  expect(matches("a\n", "a\n…")).toBe(true);
  expect(matches("a\nb\n", "a")).toBe(false);
  expect(matches("axc", "a.c")).toBe(false);
});
