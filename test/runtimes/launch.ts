// Bundles the suite for a runtime, runs it there, and returns what it printed.
import { execFile, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";

const root = fileURLToPath(new URL("../..", import.meta.url));
const out = `${root}build/runtimes/`;
const run = promisify(execFile);

export type Runtime = "node" | "deno" | "bun" | "workerd";

/** Where the program may be: the npm package that carries it for this platform, or where an install script moved it. */
function places(runtime: Runtime): string[] {
  const { arch, platform } = process;
  const exe = platform === "win32" ? ".exe" : "";
  const libc = platform === "linux" ? "-glibc" : "";
  const system = platform === "win32" ? "windows" : platform;
  const packages = {
    node: [],
    deno: [`@deno/${platform}-${arch}${libc}/deno${exe}`],
    bun: [`@oven/bun-${system}-${arch === "arm64" ? "aarch64" : arch}/bin/bun${exe}`, "bun/bin/bun.exe"],
    workerd: [`@cloudflare/workerd-${system}-${arch === "x64" ? "64" : arch}/bin/workerd${exe}`],
  }[runtime];
  return packages.map((path) => `${root}node_modules/${path}`);
}

/** Until bun's install script has run, a small script that complains stands in the program's final place. */
const MIN_PROGRAM_BYTES = 1 << 20;

/** Path of a runtime's program, or undefined where its package is not installed. */
export function findRuntime(runtime: Runtime): string | undefined {
  if (runtime === "node") return process.execPath;
  return places(runtime).find((path) => (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > MIN_PROGRAM_BYTES);
}

/** Bundles one boot file from source; `.wasm` imports stay imports, for runtimes that load modules themselves. */
async function bundle(boot: "portable" | "workerd" | "queue"): Promise<string> {
  mkdirSync(out, { recursive: true });
  const outfile = `${out}${boot}.mjs`;
  await build({
    entryPoints: [fileURLToPath(new URL(`./boot/${boot}.ts`, import.meta.url))],
    outfile,
    bundle: true,
    format: "esm",
    target: "es2022",
    platform: "neutral",
    mainFields: ["module", "main"],
    conditions: boot === "portable" ? ["import"] : ["workerd", "import"],
    external: ["*.wasm"],
    logLevel: "warning",
  });
  return outfile;
}

/** Runs the suite on Node, Deno or Bun, without any permission that a runtime can withhold. */
async function runPortable(program: string, runtime: Runtime): Promise<string> {
  const file = await bundle("portable");
  const args = { node: [file], deno: ["run", "--no-prompt", "--quiet", file], bun: ["run", file], workerd: [] }[
    runtime
  ];
  const { stdout } = await run(program, args, { cwd: out, maxBuffer: 64 << 20, timeout: 120_000 });
  return stdout.trim();
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        address && typeof address === "object" ? resolve(address.port) : reject(new Error("no port")),
      );
    });
  });
}

const config = (boot: string, port: number) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "main", worker = .suite) ],
  sockets = [ (name = "http", address = "127.0.0.1:${port}", http = (), service = "main") ] );
const suite :Workerd.Worker = (
  modules = [
    (name = "main.mjs", esModule = embed "${boot}.mjs"),
    (name = "./kernel.wasm", wasm = embed "kernel.wasm") ],
  compatibilityDate = "2025-09-01" );
`;

/** Serves a boot file on workerd until `use` is done with it, which gets a fetch that waits until it listens. */
export async function onWorkerd<T>(
  program: string,
  boot: "workerd" | "queue",
  use: (get: (path: string) => Promise<string>) => Promise<T>,
): Promise<T> {
  await bundle(boot);
  copyFileSync(`${root}build/kernel.wasm`, `${out}kernel.wasm`);
  const port = await freePort();
  writeFileSync(`${out}${boot}.capnp`, config(boot, port));
  const server = spawn(program, ["serve", `${boot}.capnp`], { cwd: out, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [server.stdout, server.stderr]) stream.on("data", (data) => (said += data));
  const ended = new Promise<void>((resolve) => server.once("close", () => resolve()));
  server.once("error", (error) => (said += error.message));
  const get = async (path: string) => {
    const signal = AbortSignal.timeout(50_000);
    while (server.exitCode === null) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { signal }).catch(() => undefined);
      if (response?.ok) return await response.text();
      if (response) throw new Error(`workerd answered ${response.status}: ${await response.text()}`);
      signal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`workerd ended with ${server.exitCode}: ${said}`);
  };
  try {
    return await use(get);
  } finally {
    server.kill("SIGKILL");
    await ended;
  }
}

/** Runs the suite on a runtime and returns the text it answered. */
export const launch = (runtime: Runtime, program: string): Promise<string> =>
  runtime === "workerd" ? onWorkerd(program, "workerd", (get) => get("/")) : runPortable(program, runtime);
