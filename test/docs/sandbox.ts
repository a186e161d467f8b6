// A user's folder: the examples, and the built package as if it were installed there.
import { execFile, spawn } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";

const root = fileURLToPath(new URL("../..", import.meta.url));
const DEFAULT_ADDRESS = "127.0.0.1:8000";

export class Sandbox {
  readonly folder = mkdtempSync(join(tmpdir(), "warmroute-docs-"));
  /** Where the document's server really listens; the documents say port 8000. */
  #address = DEFAULT_ADDRESS;
  readonly #stops: (() => Promise<void>)[] = [];
  #scripts = 0;

  constructor() {
    if (!existsSync(join(root, "dist/cli.js"))) throw new Error("dist/ is missing: run `npm run build` first");
    cpSync(join(root, "examples"), join(this.folder, "examples"), { recursive: true });
    mkdirSync(join(this.folder, "node_modules/.bin"), { recursive: true });
    symlinkSync(root, join(this.folder, "node_modules/warmroute"));
    // As npm places what the package depends on.
    for (const name of ["zod", "vitest"])
      symlinkSync(join(root, "node_modules", name), join(this.folder, "node_modules", name));
    symlinkSync(join(root, "dist/cli.js"), join(this.folder, "node_modules/.bin/warmroute"));
    chmodSync(join(root, "dist/cli.js"), 0o755);
    this.write("package.json", '{ "name": "reader", "private": true, "type": "module" }\n');
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text);
  }

  /** Runs shell lines to their end and returns what they print; fails when one of them fails. */
  shell(text: string): Promise<string> {
    return this.#run("bash", ["-euo", "pipefail", "-c", text.replaceAll(DEFAULT_ADDRESS, this.#address)]);
  }

  /** Runs a module, without its types, and returns what it prints. */
  async module(text: string): Promise<string> {
    const { code } = await transform(text, { loader: "ts", format: "esm", target: "es2022" });
    this.#scripts++;
    this.write(`script-${this.#scripts}.mjs`, code);
    return await this.#run(process.execPath, [`script-${this.#scripts}.mjs`]);
  }

  #run(program: string, args: readonly string[]): Promise<string> {
    return new Promise((resolve, reject) => {
      const options = { cwd: this.folder, env: this.#environment(), timeout: 120_000, maxBuffer: 64 << 20 };
      execFile(program, args, options, (error, stdout, stderr) => {
        if (error) reject(new Error(`${error.message}\n${stdout}${stderr}`));
        else resolve(stdout);
      });
    });
  }

  /** Starts a server, waits until it listens and returns what it printed until then; `stop` ends it. */
  start(text: string, cwd = this.folder): Promise<string> {
    const server = spawn("bash", ["-c", `exec ${text.replace(/ --port \d+/, " --port 0")}`], {
      cwd,
      env: { ...this.#environment(), PORT: "0" },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const ended = new Promise<void>((resolve) => server.once("exit", () => resolve()));
    this.#stops.push(async () => {
      try {
        if (server.pid) process.kill(-server.pid, "SIGTERM");
      } catch {
        // It has ended already.
      }
      await ended;
    });
    return new Promise((resolve, reject) => {
      let printed = "";
      let complaints = "";
      server.stderr.on("data", (data) => (complaints += data));
      server.stdout.on("data", (data) => {
        printed += data;
        const listening = /listening on http:\/\/(\S+)/.exec(printed);
        if (!listening?.[1]) return;
        this.#address = listening[1];
        resolve(printed.replaceAll(this.#address, DEFAULT_ADDRESS));
      });
      server.once("exit", (code) => reject(new Error(`${text} ended with ${code}:\n${printed}${complaints}`)));
    });
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops) await stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** As in a fresh shell: without what npm and vitest tell their children. */
  #environment(): NodeJS.ProcessEnv {
    const ours = /^npm_|^(CI|FORCE_COLOR|NODE_ENV|VITEST.*|INIT_CWD)$/i;
    const kept = Object.entries(process.env).filter(([name]) => !ours.test(name));
    return { ...Object.fromEntries(kept), NO_COLOR: "1", npm_config_update_notifier: "false" };
  }
}
