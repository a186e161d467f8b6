// Checks the package as users get it: `node scripts/check-package.mjs declared|packed|installs|external`.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = fileURLToPath(new URL("..", import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const golden = JSON.parse(readFileSync(join(root, "test/golden/hashes.json"), "utf8"));

/** npm by the program that runs this script, so that the same Node is used throughout. */
const npm = (args, cwd) =>
  execFileSync("npm", args, {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NO_COLOR: "1" },
  });

/** Every file that package.json points to: entries, types, programs. */
function declaredFiles() {
  const found = [manifest.main, manifest.types, ...Object.values(manifest.bin)];
  const walk = (node) => (typeof node === "string" ? found.push(node) : Object.values(node).forEach(walk));
  walk(manifest.exports);
  return [...new Set(found.map((path) => path.replace(/^\.\//, "")))];
}

function declared() {
  const missing = declaredFiles().filter((path) => !existsSync(join(root, path)));
  assert.deepEqual(missing, [], `package.json points to files that do not exist: ${missing.join(", ")}`);
  for (const path of Object.values(manifest.bin)) {
    accessSync(join(root, path), constants.X_OK);
    assert.match(readFileSync(join(root, path), "utf8"), /^#!\/usr\/bin\/env node\n/, `${path} has no node line`);
  }
  console.log(`${declaredFiles().length} declared files exist, the program can be run`);
}

/** Files that `npm pack` would put into the tarball; scripts are not run again, the build is there. */
function packedFiles() {
  const [{ files, size }] = [JSON.parse(npm(["pack", "--dry-run", "--json", "--ignore-scripts"], root))].flatMap(
    (answer) => (Array.isArray(answer) ? answer : Object.values(answer)),
  );
  return { paths: files.map((file) => file.path), size };
}

function packed() {
  const { paths, size } = packedFiles();
  const wanted = [...declaredFiles(), "LICENSE", "README.md", "CHANGELOG.md", "assembly/index.ts"];
  const missing = wanted.filter((path) => !paths.includes(path));
  assert.deepEqual(missing, [], `not packed: ${missing.join(", ")}`);
  const unwanted = paths.filter(
    (path) => /^(test|bench|build|node_modules|\.ci)\//.test(path) || path.endsWith(".tgz"),
  );
  assert.deepEqual(unwanted, [], `packed by mistake: ${unwanted.join(", ")}`);
  console.log(`${paths.length} files, ${size} bytes packed`);
}

/** Installs the packed tarball into a project of its own, which is gone when `use` is done. */
function withInstalled(use) {
  const folder = mkdtempSync(join(tmpdir(), "warmroute-package-"));
  try {
    const options = ["pack", "--silent", "--ignore-scripts", "--pack-destination", folder];
    const tarball = npm(options, root).trim().split("\n").pop();
    writeFileSync(join(folder, "package.json"), '{"name":"user","version":"1.0.0","type":"module","private":true}\n');
    npm(["install", "--no-fund", "--no-audit", "--omit=dev", `./${tarball}`], folder);
    use(folder, tarball);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const node = (cwd, ...args) =>
  execFileSync(process.execPath, args, { cwd, encoding: "utf8", env: { ...process.env, NO_COLOR: "1" } }).trim();

/** Uses the package as a user does. */
function installs() {
  withInstalled((folder, tarball) => {
    const { tokens, block_size, block_hashes, sequence_hashes } = golden[0];
    writeFileSync(join(folder, "tokens.json"), JSON.stringify(tokens));
    const npx = (...args) => npm(["exec", "--no", "--", "warmroute", ...args], folder);
    assert.deepEqual(JSON.parse(npx("hash", "--block-size", String(block_size), "tokens.json")), {
      block_hashes,
      sequence_hashes,
    });

    const entries = Object.keys(manifest.exports).filter((entry) => manifest.exports[entry].default?.endsWith(".js"));
    // Only who tests plugins needs vitest, and it is not installed here.
    const program = `import { createRouter } from "warmroute";
      for (const entry of ${JSON.stringify(entries)}) {
        const missing = await import("warmroute" + entry.slice(1)).then(() => undefined, (error) => error);
        if (entry === "./testing" ? !/'vitest'/.test(missing?.message) : missing) throw missing;
      }
      const router = await createRouter({ workers: [{ workerId: "1" }] });
      const selection = await router.select({ tokens: [1, 2, 3] });
      console.log(selection.worker.workerId);
      await router.close();`;
    writeFileSync(join(folder, "use.js"), program);
    assert.equal(node(folder, "use.js"), "1");
    const version = JSON.parse(readFileSync(join(folder, "node_modules/warmroute/package.json"), "utf8")).version;
    console.log(
      `${tarball} (${statSync(join(folder, tarball)).size} bytes) installs; warmroute ${version} hashes and selects`,
    );
  });
}

/** Every use of a deprecated name in a file, as an editor shows it, with what its note says. */
function deprecations(folder, file) {
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(join(folder, "tsconfig.json"), ts.sys.readFile).config,
    ts.sys,
    folder,
  );
  const path = join(folder, file);
  const service = ts.createLanguageService({
    getScriptFileNames: () => [path],
    getScriptVersion: () => "1",
    getScriptSnapshot: (name) =>
      ts.sys.fileExists(name) ? ts.ScriptSnapshot.fromString(ts.sys.readFile(name)) : undefined,
    getCurrentDirectory: () => folder,
    getCompilationSettings: () => options,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: ts.sys.fileExists,
    readFile: ts.sys.readFile,
    directoryExists: ts.sys.directoryExists,
    realpath: ts.sys.realpath,
  });
  const text = ts.sys.readFile(path);
  const found = service.getSuggestionDiagnostics(path).filter((diagnostic) => diagnostic.reportsDeprecated);
  return found.map(({ start, length }) => {
    const tags = service.getQuickInfoAtPosition(path, start)?.tags ?? [];
    const note = tags.find((tag) => tag.name === "deprecated")?.text?.map((part) => part.text);
    return { name: text.slice(start, start + length), note: note?.join("") ?? "" };
  });
}

/** Builds and runs a catalog of another owner against the package, under its old names and its new ones. */
function external() {
  withInstalled((user) => {
    const folder = join(user, "external-catalog");
    cpSync(join(root, "test/external-catalog"), folder, { recursive: true });
    node(folder, join(root, "node_modules/typescript/bin/tsc"), "-p", ".");
    for (const condition of ["default", "development"]) {
      console.log(`${condition}: ${node(folder, "-C", condition, "out/main.js")}`);
    }

    const old = deprecations(folder, "src/old-names.ts");
    const wanted = ["ROUTING", "WorkerInputs", "WorkerSelectionPolicy", "WorkerSelectionPolicyRegistry", "perRow"];
    wanted.push("register", "workerSelectionPolicyFactory");
    assert.deepEqual([...new Set(old.map(({ name }) => name))].sort(), wanted.sort());
    for (const wantedName of wanted) {
      const notes = old.filter(({ name }) => name === wantedName).map(({ note }) => note);
      assert(
        notes.some((note) => note.endsWith("; removed in 1.7.")),
        `${wantedName} does not say when it goes: ${notes}`,
      );
    }
    assert.deepEqual(deprecations(folder, "src/new-names.ts"), []);
    console.log(`${wanted.length} old names are deprecated until 1.7, the new ones are not`);

    // The suites run under the user's own vitest; here that is the repository's.
    symlinkSync(join(root, "node_modules/vitest"), join(user, "node_modules/vitest"));
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    console.log(node(folder, vitest, "run", "--root", folder, "--reporter=dot"));
  });
}

const checks = { declared, packed, installs, external };
const name = process.argv[2] ?? "";
if (!Object.hasOwn(checks, name)) {
  console.error(`usage: node scripts/check-package.mjs ${Object.keys(checks).join("|")}`);
  process.exit(2);
}
try {
  checks[name]();
} catch (error) {
  console.error(error.stdout ? `${error.message}\n${error.stdout}` : error.message);
  process.exitCode = 1;
}
