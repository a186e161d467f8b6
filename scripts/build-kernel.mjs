// Compiles the kernel (asconfig.json) and writes the inlined form that runtimes without
// module imports load: src/kernel/generated/bytes.ts.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const target = process.argv.includes("--debug") ? "debug" : "release";
mkdirSync(`${root}build`, { recursive: true });
execFileSync(
  process.execPath,
  [`${root}node_modules/assemblyscript/bin/asc.js`, "--config", "asconfig.json", "--target", target],
  {
    cwd: root,
    stdio: "inherit",
  },
);
const wasm = readFileSync(`${root}build/${target === "debug" ? "kernel.debug" : "kernel"}.wasm`);
mkdirSync(`${root}src/kernel/generated`, { recursive: true });
writeFileSync(
  `${root}src/kernel/generated/bytes.ts`,
  `// Made by scripts/build-kernel.mjs from assembly/. Do not edit.\nexport const kernelBase64 =\n  "${wasm.toString("base64")}";\n`,
);
