// The native side: a C program compiled when the bench starts, and a child process that runs one round a line.
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Round, Side } from "./harness.js";
import { nativeFolder } from "./locate.js";

let folder: string | undefined;

/** A temporary folder of this process, removed when it ends. */
function temporary(): string {
  if (folder === undefined) {
    const made = mkdtempSync(join(tmpdir(), "warmroute-bench-"));
    process.on("exit", () => rmSync(made, { recursive: true, force: true }));
    folder = made;
  }
  return folder;
}

/** Why nothing native can run here, if so. `header` is one that the program includes. */
export function nativeMissing(header?: string): string | undefined {
  if (spawnSync("gcc", ["--version"], { stdio: "ignore" }).status !== 0) return "needs gcc";
  if (nativeFolder() === undefined) return "needs the C sources of bench/native";
  if (header === undefined) return undefined;
  const found = spawnSync("gcc", ["-fsyntax-only", "-x", "c", "-"], {
    input: `#include <${header}>\n`,
    stdio: ["pipe", "ignore", "ignore"],
  });
  return found.status === 0 ? undefined : `needs ${header} (Debian: libxxhash-dev)`;
}

/** Compiles one C source with `gcc -O3`; the path of the program. `source` is a name in bench/native, or a path. */
export function compile(source: string, options: readonly string[] = []): string {
  const program = join(temporary(), `${source.replaceAll(/\W/g, "_")}_${options.length}`);
  const path = source.startsWith("/") ? source : `${nativeFolder()}${source}`;
  execFileSync("gcc", ["-O3", "-w", ...options, "-o", program, path, "-lm"], { stdio: ["ignore", "ignore", "pipe"] });
  return program;
}

/** A running native program of bench/native. */
export class Native {
  private readonly answers: AsyncIterator<string>;

  private constructor(private readonly child: ChildProcess) {
    this.answers = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  }

  /** Starts the program and waits until it has built its data. */
  static async start(program: string, options: readonly (string | number)[] = []): Promise<Native> {
    const native = new Native(spawn(program, options.map(String), { stdio: ["pipe", "pipe", "inherit"] }));
    if ((await native.line()) !== "ready") throw new Error(`${program} did not start`);
    return native;
  }

  private async line(): Promise<string> {
    const { value, done } = await this.answers.next();
    if (done) throw new Error("the native side ended early");
    return value;
  }

  /** One round: nanoseconds an operation, and the checksum of the answers. */
  async round(verb: string, argument: number, repetitions: number): Promise<Round> {
    this.child.stdin!.write(`${verb} ${argument} ${repetitions}\n`);
    const [nanoseconds, sum] = (await this.line()).split(" ") as [string, string];
    if (Number(nanoseconds) < 0) throw new Error(`the native side does not know ${verb}`);
    return { nanoseconds: Number(nanoseconds), sum };
  }

  /** A side whose rounds take at least `milliseconds`; a repetition has `operations` operations. */
  async side(name: string, verb: string, argument: number, operations: number, milliseconds: number): Promise<Side> {
    const first = await this.round(verb, argument, 2);
    const repetitions = Math.max(1, Math.ceil((milliseconds * 1e6) / (first.nanoseconds * operations)));
    return { name, round: () => this.round(verb, argument, repetitions) };
  }

  stop(): void {
    this.child.stdin!.end();
  }
}
