// Proves that the tests bear load: each mutant is one changed line that breaks the plugin system, and at least one
// test must fail for it. The tests must pass without a mutant first. Exits 1 if a mutant survives.
//   npm run mutants [-- NAME…]
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** `line` stands once in `file`; the mutant has `instead` in its place, and one of `tests` must notice. */
const mutants = [
  {
    name: "the classifier is not installed",
    file: "src/router/hooks.ts",
    line: "if (!factory) return {};",
    instead: "if (factory || !factory) return {};",
    tests: ["test/router/construction.test.ts"],
  },
  {
    name: "the policy's factory is called for each request",
    file: "src/router/pools.ts",
    line: "return this.#pools.get(nameOf(routingGroup, role));",
    instead:
      "this.#settings.factory({ role, partition: { model: this.#settings.model, routingGroup } } as never); return this.#pools.get(nameOf(routingGroup, role));",
    tests: ["test/router/construction.test.ts", "test/router/entry-points.test.ts"],
  },
  {
    name: "the role of a policy is ignored",
    file: "src/plugins/resolve.ts",
    line: "const factory = factories.get(init.role) ?? fallback;",
    instead: "const factory = [...factories.values()][0] ?? fallback;",
    tests: ["test/router/entry-points.test.ts"],
  },
  {
    name: "what a policy file needs is not checked",
    file: "src/router/construct.ts",
    line: "if (policy === undefined) return plugins ?? new RouterPlugins();",
    instead: "if (plugins === plugins) return plugins ?? new RouterPlugins();",
    tests: ["test/router/construction.test.ts"],
  },
  {
    name: "the frontend drops the bundle",
    file: "src/frontend/model-table.ts",
    line: "{ ...options, ...this.#shared, plugins: this.plugins },",
    instead: "{ ...options, ...this.#shared },",
    tests: ["test/router/construction.test.ts"],
  },
  {
    name: "costs are not filled with NaN before a scorer",
    file: "src/scheduling/policy/policy-run.ts",
    line: "scratch.fill(Number.NaN);",
    instead: "scratch.fill(0);",
    tests: ["test/scheduling"],
  },
  {
    name: "the terminal event is sent twice",
    file: "src/scheduling/classifier/lifecycle.ts",
    line: "this.#owner.ended(this, event);",
    instead: "this.#owner.ended(this, event); this.#owner.happened(event);",
    tests: ["test/scheduling/classifier"],
  },
];

const chosen = process.argv.slice(2);
const wanted = mutants.filter(({ name }) => chosen.length === 0 || chosen.some((part) => name.includes(part)));

const tree = mkdtempSync(join(tmpdir(), "warmroute-mutants-"));
for (const name of [
  "src",
  "test",
  "assembly",
  "bench",
  "examples",
  "package.json",
  "tsconfig.json",
  "vitest.config.ts",
  "asconfig.json",
]) {
  cpSync(join(root, name), join(tree, name), { recursive: true });
}
symlinkSync(join(root, "node_modules"), join(tree, "node_modules"));

let failures = "";

/** Whether the tests pass in the copied tree; what they say otherwise stays in `failures`. */
function passes(tests) {
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  try {
    execFileSync(process.execPath, [vitest, "run", "--bail", "1", ...tests], { cwd: tree, stdio: "pipe" });
    return true;
  } catch (error) {
    const said = String(error.stdout);
    // Signals and missing programs are no verdict of a test.
    if (!/Test(s| Files) .*failed/.test(said)) throw error;
    failures = said;
    return false;
  }
}

try {
  const all = [...new Set(wanted.flatMap(({ tests }) => tests))];
  if (!passes(all)) throw new Error(`the tests fail without any mutant:\n${failures}`);
  let survivors = 0;
  for (const { name, file, line, instead, tests } of wanted) {
    const path = join(tree, file);
    const text = readFileSync(path, "utf8");
    if (text.split(line).length !== 2) throw new Error(`${file} does not hold this line once: ${line}`);
    writeFileSync(
      path,
      text.replace(line, () => instead),
    );
    const survived = passes(tests);
    writeFileSync(path, text);
    console.log(`${survived ? "SURVIVED" : "caught  "}  ${name}`);
    if (survived) survivors++;
  }
  console.log(`${wanted.length - survivors} caught, ${survivors} survived`);
  if (survivors > 0) process.exitCode = 1;
} finally {
  rmSync(tree, { recursive: true, force: true });
}
