// Compiles the kernel (asconfig.json) and writes the inlined form that runtimes without
// module imports load: src/kernel/generated/bytes.ts.
//
// The release module is compiled plainly and then optimised by wasm-opt: that order makes the module
// a tenth smaller than asc's own pipeline at the same speed. At -O2, since -O3 makes more copies of small
// functions and nothing faster: what must be inlined says so. Functions are ordered by name, so that
// those of one file lie together and pack better.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const isDebug = process.argv.includes("--debug");
const run = (tool, ...args) =>
  execFileSync(process.execPath, [`${root}node_modules/${tool}`, ...args], { cwd: root, stdio: "inherit" });

mkdirSync(`${root}build`, { recursive: true });
run("assemblyscript/bin/asc.js", "--config", "asconfig.json", "--target", isDebug ? "debug" : "release");
const features = [
  "--enable-simd",
  "--enable-bulk-memory",
  "--enable-sign-ext",
  "--enable-nontrapping-float-to-int",
  "--enable-mutable-globals",
];
const passes = ["-O2", "--reorder-functions-by-name", "--strip-debug"];
if (!isDebug)
  run("binaryen/bin/wasm-opt", "build/kernel.plain.wasm", ...features, ...passes, "-o", "build/kernel.wasm");
const wasm = readFileSync(`${root}build/${isDebug ? "kernel.debug" : "kernel"}.wasm`);
mkdirSync(`${root}src/kernel/generated`, { recursive: true });
writeFileSync(
  `${root}src/kernel/generated/bytes.ts`,
  `// Made by scripts/build-kernel.mjs from assembly/. Do not edit.\nexport const kernelBase64 =\n  "${wasm.toString("base64")}";\n`,
);
