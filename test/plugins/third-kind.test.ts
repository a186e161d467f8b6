// A kind of plugin that does not exist takes three additions: its entry, its field and its hook. They are made in a
// copy of the sources, which must then type-check, read the new section, and build with what it names.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** By file: text, and what comes in its place. */
const additions: Record<string, [from: string, to: string][]> = {
  "plugins/kinds.ts": [
    [
      "export const pluginKinds = {",
      'export type KvHintFactory = (context: { blockSize: number }) => { readonly hint: string };\nexport const pluginKinds = {\n  kvHint: single<KvHintFactory>("KV hint", "kv_hint_policy"),',
    ],
  ],
  "plugins/bundle.ts": [
    [
      "export interface RouterPluginParts {",
      "export interface RouterPluginParts {\n  readonly kvHint?: KvHintFactory | undefined;",
    ],
    ["export class RouterPlugins {", "export class RouterPlugins {\n  readonly kvHint: KvHintFactory | undefined;"],
    [
      "constructor(parts: RouterPluginParts = {}) {",
      "constructor(parts: RouterPluginParts = {}) {\n    this.kvHint = parts.kvHint;",
    ],
    ["import type {", 'import type { KvHintFactory } from "./kinds.js";\nimport type {'],
  ],
  "router/hooks.ts": [
    [
      "const hooks: readonly Hook[] = [",
      "const kvHint: Hook = ({ kvHint: factory }, { blockSize }) => {\n  factory?.({ blockSize });\n  return {};\n};\n\nconst hooks: readonly Hook[] = [kvHint, ",
    ],
  ],
};

const policy = "kv_hint_policy: { type: acme-hint, parameters: { fetch: near } }\n";
const catalog = `export const made = [];
export const register = (registry) =>
  registry.registerPlugin("kvHint", "acme-hint", ({ raw }) => (context) => {
    made.push({ ...raw, ...context });
    return { hint: raw.fetch };
  });
`;

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "warmroute-third-kind-"));
  cpSync(join(root, "src"), join(folder, "src"), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  for (const [name, changes] of Object.entries(additions)) {
    const path = join(folder, "src", name);
    let text = readFileSync(path, "utf8");
    for (const [from, to] of changes) {
      expect(text, `${name} has ${from}`).toContain(from);
      text = text.replace(from, () => to);
    }
    writeFileSync(path, text);
  }
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "policy.yaml"), policy);
  writeFileSync(join(folder, "catalog.mjs"), catalog);
  await build({
    entryPoints: ["cli", "node", "plugins"].map((name) => join(folder, `src/${name}.ts`)),
    outdir: join(folder, "dist"),
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    packages: "external",
    logLevel: "error",
  });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (...args: string[]) => execFileSync(process.execPath, args, { cwd: folder, encoding: "utf8" });

test("the copy type-checks", () => {
  const { compilerOptions } = JSON.parse(readFileSync(join(root, "tsconfig.json"), "utf8"));
  const files = ["cli", "node", "plugins"].map((name) => `src/${name}.ts`);
  const config = { compilerOptions, files: [...files, "src/kernel-wasm.d.ts"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  const { stdout } = spawnSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc")], {
    cwd: folder,
    encoding: "utf8",
  });
  expect(stdout).toBe("");
});

test("check reads the section, knows the types and says what resolves", () => {
  const document = JSON.parse(
    run("dist/cli.js", "check", "--policy", "policy.yaml", "--catalog", "catalog.mjs", "--json", "--types"),
  );
  expect(document.kv_hint_policy).toEqual({ type: "acme-hint", parameters: { fetch: "near" } });
  expect(document.types.kv_hint_policy).toEqual(["acme-hint"]);
});

test("each router is built with it, once", () => {
  writeFileSync(
    join(folder, "use.mjs"),
    `import { createRouter, loadPolicy } from "./dist/node.js";
import { createRegistry } from "./dist/plugins.js";
import * as catalog from "./catalog.mjs";
const plugins = createRegistry(catalog).resolvePlugins(await loadPolicy("policy.yaml"));
for (const blockSize of [16, 32]) {
  const router = await createRouter({ blockSize, plugins, workers: [{ workerId: "1" }] });
  for (let i = 0; i < 3; i++) await router.select({ tokens: [1, 2, 3] });
  await router.close();
}
console.log(JSON.stringify(catalog.made));
`,
  );
  expect(JSON.parse(run("use.mjs"))).toEqual([
    { fetch: "near", blockSize: 16 },
    { fetch: "near", blockSize: 32 },
  ]);
});
