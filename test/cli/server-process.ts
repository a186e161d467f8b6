// `warmroute serve` as a process.
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export const cli = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));
const running: ChildProcess[] = [];

/** Ends every process that a test has left. */
export function killAll(): void {
  for (const child of running.splice(0)) child.kill("SIGKILL");
}

/** Starts the built command; its output grows while it runs. */
export function start(args: string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [cli, "serve", ...args], { env: { ...process.env, ...env } });
  running.push(child);
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (data) => (output.stdout += data));
  child.stderr.on("data", (data) => (output.stderr += data));
  const exited = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { child, output, exited };
}

/** Starts a server and waits for the line that says where it listens. */
export async function listening(args: string[], env: Record<string, string> = {}) {
  const server = start(args, env);
  const url = await new Promise<string>((resolve, reject) => {
    const look = () => {
      const line = /^listening on (http:\/\/\S+)\n$/m.exec(server.output.stdout);
      if (line) resolve(line[1]!);
    };
    server.child.stdout!.on("data", look);
    void server.exited.then((code) => reject(new Error(`exited ${code}: ${server.output.stderr}`)));
  });
  return { ...server, url };
}

export const post = (url: string, path: string, body: object, headers: Record<string, string> = {}) =>
  fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "mock", ...body }),
  });
