// Builds dist/ from src/ with tsc, and puts the kernel's module beside it for runtimes that import .wasm files.
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
rmSync(`${root}dist`, { recursive: true, force: true });
execFileSync(process.execPath, [`${root}node_modules/typescript/bin/tsc`, "-p", "tsconfig.build.json"], { cwd: root, stdio: "inherit" });
copyFileSync(`${root}build/kernel.wasm`, `${root}dist/kernel.wasm`);
chmodSync(`${root}dist/cli.js`, 0o755);
