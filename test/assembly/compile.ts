// Compiles one AssemblyScript entry with the kernel's own options, so that a test can reach
// functions which the kernel's ABI does not export.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The compiled module of `test/assembly/entries/<name>.ts`; it imports nothing. */
export function compileEntry(name: string): WebAssembly.Module {
  mkdirSync(`${root}build/test`, { recursive: true });
  const out = `build/test/${basename(name)}-${process.pid}.wasm`; // test files compile at the same time
  execFileSync(
    process.execPath,
    [
      `${root}node_modules/assemblyscript/bin/asc.js`,
      `test/assembly/entries/${name}.ts`,
      ...["--config", "test/assembly/asconfig.json"], // not the kernel's, which names an entry
      ...["--runtime", "stub", "--enable", "simd", "--maximumMemory", "65536", "--use", "abort=", "-O3", "--noAssert"],
      ...["--outFile", out],
    ],
    { cwd: root, stdio: ["ignore", "ignore", "inherit"] },
  );
  return new WebAssembly.Module(readFileSync(`${root}${out}`));
}

/** A fresh instance of an entry, with its exports as the caller names them. */
export function instantiateEntry<Exports extends { memory: WebAssembly.Memory }>(name: string): Exports {
  return new WebAssembly.Instance(compileEntry(name)).exports as unknown as Exports;
}
