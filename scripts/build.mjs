// Builds dist/ from src/ with tsc, and puts the kernel's module beside it for runtimes that import .wasm files.
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, rmSync, symlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
rmSync(`${root}dist`, { recursive: true, force: true });
execFileSync(process.execPath, [`${root}node_modules/typescript/bin/tsc`, "-p", "tsconfig.build.json"], {
  cwd: root,
  stdio: "inherit",
});
copyFileSync(`${root}build/kernel.wasm`, `${root}dist/kernel.wasm`);
chmodSync(`${root}dist/cli.js`, 0o755);

// The benchmarks live beside src/; their bundle goes with the command that runs them.
await build({
  entryPoints: [`${root}bench/main.ts`],
  outfile: `${root}dist/bench.js`,
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  packages: "external",
  loader: { ".c": "text" },
  logLevel: "warning",
});

// `npx warmroute` in this checkout runs the build, instead of installing the checkout into itself first.
const bin = `${root}node_modules/.bin/warmroute`;
rmSync(bin, { force: true });
symlinkSync("../../dist/cli.js", bin);
