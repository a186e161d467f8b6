// Where the bench finds what it measures. It runs from bench/ (tests), and as one file from dist/ or build/: all of
// them lie one level below the root.
import { existsSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { fileURLToPath } from "node:url";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const first = (...paths: string[]): string | undefined => paths.map(here).find((path) => existsSync(path));

/** The release module. */
export function kernelPath(): string {
  const path = first("./kernel.wasm", "../build/kernel.wasm");
  if (!path) throw new Error("there is no kernel.wasm: run `npm run build` first");
  return path;
}

/** The folder of the native side's C sources, as it stands in the repository or beside the bundle. */
export const nativeFolder = (): string | undefined => first("../bench/native/", "./native/");

/** A file of the sketches that came with the project's measurements, where they are present. */
export const sketch = (name: string): string | undefined => first(`../../shared/proto/${name}`);

/** The machine that the figures belong to. */
export function machine(): Record<string, string | number> {
  const processors = cpus();
  return {
    cpu: processors[0]?.model ?? "unknown",
    cores: processors.length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    platform: process.platform,
    arch: process.arch,
    node: process.version,
    v8: process.versions.v8,
  };
}
