// Checks the package as users get it: `node scripts/check-package.mjs declared|packed|installs`.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { accessSync, constants, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

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

/** Installs the packed tarball into an empty project and uses it there as a user does. */
function installs() {
  const folder = mkdtempSync(join(tmpdir(), "warmroute-package-"));
  try {
    const tarball = npm(["pack", "--silent", "--ignore-scripts", "--pack-destination", folder], root)
      .trim()
      .split("\n")
      .pop();
    writeFileSync(join(folder, "package.json"), '{"name":"user","version":"1.0.0","type":"module","private":true}\n');
    npm(["install", "--no-fund", "--no-audit", "--omit=dev", `./${tarball}`], folder);

    const { tokens, block_size, block_hashes, sequence_hashes } = golden[0];
    writeFileSync(join(folder, "tokens.json"), JSON.stringify(tokens));
    const npx = (...args) => npm(["exec", "--no", "--", "warmroute", ...args], folder);
    assert.deepEqual(JSON.parse(npx("hash", "--block-size", String(block_size), "tokens.json")), {
      block_hashes,
      sequence_hashes,
    });

    const entries = Object.keys(manifest.exports).filter((entry) => manifest.exports[entry].default?.endsWith(".js"));
    const program = `import { createRouter } from "warmroute";
      for (const entry of ${JSON.stringify(entries)}) await import("warmroute" + entry.slice(1));
      const router = await createRouter({ workers: [{ workerId: "1" }] });
      const selection = await router.select({ tokens: [1, 2, 3] });
      console.log(selection.worker.workerId);
      await router.close();`;
    writeFileSync(join(folder, "use.js"), program);
    const answer = execFileSync(process.execPath, ["use.js"], { cwd: folder, encoding: "utf8" });
    assert.equal(answer.trim(), "1");
    const version = JSON.parse(readFileSync(join(folder, "node_modules/warmroute/package.json"), "utf8")).version;
    console.log(
      `${tarball} (${statSync(join(folder, tarball)).size} bytes) installs; warmroute ${version} hashes and selects`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const checks = { declared, packed, installs };
const name = process.argv[2] ?? "";
if (!Object.hasOwn(checks, name)) {
  console.error(`usage: node scripts/check-package.mjs ${Object.keys(checks).join("|")}`);
  process.exit(2);
}
try {
  checks[name]();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
