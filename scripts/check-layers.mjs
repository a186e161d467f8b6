// Checks who imports whom (docs/architecture.md), in src/ and in assembly/. Run alone it prints each violation and
// exits 1; test/layers.test.ts runs it on the repository and on small faulty trees.
import { readdirSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { posix } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import ts from "typescript";

/** Folders of src/, lowest first: each may import itself and those before it. */
export const layers = [
  ...["core", "kernel", "plugins", "events", "discovery", "scheduling", "dispatch", "router", "frontend"],
  ...["services", "replay", "runtime", "testing", "cli"],
];
/** Folders that must run on every runtime: no Node built-in, no Node global, no package that needs them. */
export const universal = layers.slice(0, layers.indexOf("frontend") + 1);
/** Entries that compose universal folders only; any other file directly in src/ may import every folder. */
const universalEntries = ["index", "workerd", "exports"];
/** Folders that may use the library as a user does, through src/index.ts. */
const usesEntry = ["runtime", "testing", "cli"];
const universalPackages = ["@assemblyscript/loader", "hono", "yaml", "zod"];
/** Packages that importing the library must not load; they come in on first use. */
const lazyPackages = ["hono", "yaml", "zod"];
const nodeGlobals = ["Buffer", "process", "require", "setImmediate", "clearImmediate", "__dirname", "__filename"];

/** Folders of assembly/, lowest first; status.ts belongs to the lowest. */
export const assemblyLayers = ["memory", "hash", "prefix", "load", "select", "snapshot"];

const parse = (path, text) => ts.createSourceFile(path, text, ts.ScriptTarget.ESNext, true, ts.ScriptKind.TS);

/**
 * All imports and re-exports of a file. `kind` is `type` for those that the compiler erases, `dynamic` for
 * `import()`, else `static` (with verbatimModuleSyntax also `import { type A }` stays in the output).
 */
export function importsOf(path, text) {
  const source = parse(path, text);
  const found = [];
  const add = (node, kind) => {
    const line = source.getLineAndCharacterOfPosition(node.getStart()).line + 1;
    found.push({ specifier: node.text, kind, line });
  };
  const visit = (node) => {
    if (ts.isImportDeclaration(node)) {
      add(node.moduleSpecifier, node.importClause?.isTypeOnly ? "type" : "static");
    } else if (ts.isExportDeclaration(node) && node.moduleSpecifier) {
      add(node.moduleSpecifier, node.isTypeOnly ? "type" : "static");
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      add(node.argument.literal, "type");
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const [argument] = node.arguments;
      if (argument && ts.isStringLiteralLike(argument)) add(argument, "dynamic");
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Node globals that a file reads without declaring them itself. */
function nodeGlobalsOf(path, text) {
  const source = parse(path, text);
  const read = new Map();
  const declared = new Set();
  const visit = (node) => {
    if (ts.isIdentifier(node) && nodeGlobals.includes(node.text)) {
      const { parent } = node;
      const isMember =
        (ts.isPropertyAccessExpression(parent) && parent.name === node) ||
        ((ts.isPropertyAssignment(parent) || ts.isClassElement(parent) || ts.isTypeElement(parent)) &&
          parent.name === node);
      if (ts.isVariableDeclaration(parent) || ts.isParameter(parent) || ts.isFunctionDeclaration(parent)) {
        if (parent.name === node) declared.add(node.text);
      }
      if (!isMember) read.set(node.text, source.getLineAndCharacterOfPosition(node.getStart()).line + 1);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return [...read].filter(([name]) => !declared.has(name)).map(([name, line]) => ({ name, line }));
}

/** Path of the file that a relative import means; undefined for packages. */
function resolve(from, specifier) {
  if (!specifier.startsWith(".")) return undefined;
  return posix.join(posix.dirname(from), specifier.replace(/\.js$/, ".ts"));
}

const packageOf = (specifier) => specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
const isBuiltin = (specifier) => specifier.startsWith("node:") || builtinModules.includes(specifier);

/** Every import cycle once, as the list of its files. */
function cyclesOf(graph) {
  const cycles = [];
  const state = new Map();
  const walk = (file, trail) => {
    state.set(file, "open");
    for (const next of graph.get(file) ?? []) {
      if (state.get(next) === "open") cycles.push([...trail.slice(trail.indexOf(next)), next]);
      else if (!state.has(next)) walk(next, [...trail, next]);
    }
    state.set(file, "done");
  };
  for (const file of graph.keys()) if (!state.has(file)) walk(file, [file]);
  return cycles;
}

const withoutLoops = (graph) => cyclesOf(graph).map((cycle) => `circular import: ${cycle.join(" → ")}`);

/** Violations in src/, as messages; `files` maps paths such as `src/core/ids.ts` to their text. */
export function checkSource(files) {
  const violations = [];
  const graph = new Map();
  const imports = new Map([...files].map(([path, text]) => [path, importsOf(path, text)]));
  for (const [path, list] of imports) {
    const [, folder, nested] = path.split("/");
    const at = (line) => `${path}:${line}`;
    const entry = nested === undefined ? folder.replace(/\.ts$/, "") : undefined;
    const rank = entry === undefined ? layers.indexOf(folder) : layers.length;
    if (rank < 0) violations.push(`${path}: src/${folder} is no layer`);
    const everywhere = entry === undefined ? universal.includes(folder) : universalEntries.includes(entry);
    const edges = [];
    graph.set(path, edges);
    for (const { specifier, kind, line } of list) {
      const target = resolve(path, specifier);
      if (target === undefined) {
        if (!everywhere || kind === "type") continue;
        if (isBuiltin(specifier)) violations.push(`${at(line)}: Node built-in ${specifier} in a universal folder`);
        else if (!universalPackages.includes(packageOf(specifier)))
          violations.push(`${at(line)}: package ${specifier} is not known to run on every runtime`);
        continue;
      }
      if (kind !== "dynamic" && files.has(target)) edges.push(target);
      const [, targetFolder, targetNested] = target.split("/");
      if (!target.startsWith("src/")) violations.push(`${at(line)}: ${specifier} leaves src/`);
      else if (targetNested === undefined) {
        const allowed = entry !== undefined || (usesEntry.includes(folder) && targetFolder === "index.ts");
        if (!allowed) violations.push(`${at(line)}: ${folder} imports the entry ${target}`);
      } else if (layers.indexOf(targetFolder) > rank) {
        violations.push(`${at(line)}: ${folder} imports ${targetFolder}, which is above it`);
      } else if (entry !== undefined && everywhere && !universal.includes(targetFolder)) {
        violations.push(`${at(line)}: the universal entry ${entry} imports ${targetFolder}`);
      }
    }
    if (everywhere)
      for (const { name, line } of nodeGlobalsOf(path, files.get(path)))
        violations.push(`${at(line)}: Node global ${name} in a universal folder`);
  }
  return [...violations, ...withoutLoops(graph), ...checkReach(imports)];
}

/** What importing the library loads: never a Node built-in, and statically none of the lazy packages. */
function checkReach(imports) {
  const violations = [];
  for (const entry of universalEntries.map((name) => `src/${name}.ts`)) {
    for (const kinds of [["static"], ["static", "dynamic"]]) {
      const seen = new Set([entry]);
      for (const path of seen) {
        for (const { specifier, kind, line } of imports.get(path) ?? []) {
          if (!kinds.includes(kind)) continue;
          const target = resolve(path, specifier);
          if (target !== undefined) seen.add(target);
          else if (isBuiltin(specifier))
            violations.push(`${path}:${line}: ${entry} reaches the Node built-in ${specifier}`);
          else if (kinds.length === 1 && lazyPackages.includes(packageOf(specifier)))
            violations.push(`${path}:${line}: importing ${entry} loads ${specifier}; use import() where it is needed`);
        }
      }
    }
  }
  return [...new Set(violations)];
}

/** Violations in assembly/: folders in their order, index.ts imported by nobody, no cycles, nothing from outside. */
export function checkAssembly(files) {
  const violations = [];
  const graph = new Map();
  const rankOf = (path) => {
    const [, folder, nested] = path.split("/");
    if (nested !== undefined) return assemblyLayers.indexOf(folder);
    return folder === "status.ts" ? 0 : assemblyLayers.length;
  };
  for (const [path, text] of files) {
    const edges = [];
    graph.set(path, edges);
    if (rankOf(path) < 0) violations.push(`${path}: assembly/${path.split("/")[1]} is no layer`);
    for (const { specifier, line } of importsOf(path, text)) {
      const bare = resolve(path, specifier);
      const target = bare && [`${bare}.ts`, `${bare}/index.ts`].find((name) => files.has(name));
      if (target === undefined) violations.push(`${path}:${line}: ${specifier} is not a file of assembly/`);
      else {
        edges.push(target);
        if (rankOf(target) > rankOf(path))
          violations.push(`${path}:${line}: ${path} imports ${target}, which is above it`);
        else if (rankOf(target) === assemblyLayers.length) violations.push(`${path}:${line}: nobody imports ${target}`);
      }
    }
  }
  return [...violations, ...withoutLoops(graph)];
}

/** The TypeScript files under a folder of the repository, by path from its root. */
export function readTree(folder) {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const names = readdirSync(`${root}${folder}`, { recursive: true }).map((name) => name.replaceAll("\\", "/"));
  const paths = names
    .filter((name) => name.endsWith(".ts") && !name.includes("generated/"))
    .map((name) => `${folder}/${name}`);
  return new Map(paths.sort().map((path) => [path, readFileSync(`${root}${path}`, "utf8")]));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const violations = [...checkSource(readTree("src")), ...checkAssembly(readTree("assembly"))];
  for (const violation of violations) console.error(violation);
  console.log(`layers: ${violations.length === 0 ? "ok" : `${violations.length} violations`}`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
