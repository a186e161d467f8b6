import { Command, CommanderError } from "commander";
import { WarmrouteError } from "../core/errors.js";
import { registerBench } from "./bench.js";
import { registerExplain } from "./explain.js";
import { registerHash } from "./hash.js";
import { registerReplay } from "./replay.js";
import { registerServe } from "./serve.js";
import { registerTrace } from "./trace.js";

const BAD_INPUT = 1;
const BAD_USAGE = 2;

/** Runs the command line and answers its exit code: 0, 1 for bad input, 2 for bad usage. */
export async function main(argv: readonly string[]): Promise<number> {
  const json = argv.includes("--json");
  const program = new Command("warmroute")
    .description("A KV-cache-aware router for LLM inference.")
    .version("0.1.0")
    .exitOverride()
    .configureOutput({ writeErr: (text) => void (json || process.stderr.write(text)) });
  for (const register of [registerServe, registerHash, registerExplain, registerReplay, registerTrace, registerBench]) {
    register(program);
  }
  for (const command of program.commands) command.exitOverride().copyInheritedSettings(program);
  try {
    await program.parseAsync(argv, { from: "user" });
    return typeof process.exitCode === "number" ? process.exitCode : 0;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      if (json) report(json, { code: "invalid_usage", message: error.message.replace(/^error: /, "") });
      return BAD_USAGE;
    }
    if (!(error instanceof WarmrouteError)) throw error;
    const suggestion = error.details.suggestion;
    report(json, {
      code: error.code,
      ...(error.path === undefined ? {} : { path: error.path }),
      message: error.message,
      ...(suggestion === undefined ? {} : { suggestion }),
      ...(json ? {} : { help: error.help }),
    });
    return error.code === "invalid_usage" ? BAD_USAGE : BAD_INPUT;
  }
}

function report(json: boolean, error: { code: string; message: string; help?: string; suggestion?: unknown }): void {
  if (json) process.stderr.write(`${JSON.stringify({ error })}\n`);
  else {
    const hint = error.suggestion === undefined ? "" : ` Did you mean ${error.suggestion}?`;
    process.stderr.write(`error: ${error.code}: ${error.message}.${hint} ${error.help ?? ""}`.trimEnd().concat("\n"));
  }
}
