import { Command, CommanderError } from "commander";
import { registerBench } from "./bench.js";
import { registerCheck } from "./check.js";
import { registerExplain } from "./explain.js";
import { registerHash } from "./hash.js";
import { registerReplay } from "./replay.js";
import { BAD_USAGE, report } from "./report.js";
import { registerServe } from "./serve.js";
import { registerTrace } from "./trace.js";

/** Whether errors are written as JSON: known before the options are read, as these may be wrong. */
export const wantsJson = (argv: readonly string[]): boolean => argv.includes("--json");

/** The command line with all its verbs; with `json` it prints no error of its own. */
export function commandLine(json: boolean): Command {
  const program = new Command("warmroute")
    .description("A KV-cache-aware router for LLM inference.")
    .version("0.1.0")
    .exitOverride()
    .configureOutput({
      // Only help comes this way, where no command is given: errors are reported below.
      writeErr: (text) => void (json || process.stderr.write(text)),
      outputError: () => {},
    });
  for (const register of [
    registerServe,
    registerCheck,
    registerHash,
    registerExplain,
    registerReplay,
    registerTrace,
    registerBench,
  ]) {
    register(program);
  }
  for (const command of program.commands) command.exitOverride().copyInheritedSettings(program);
  return program;
}

/** Runs the command line and answers its exit code: 0, 1 for bad input, 2 for bad usage. */
export async function main(argv: readonly string[]): Promise<number> {
  const json = wantsJson(argv);
  try {
    await commandLine(json).parseAsync(argv, { from: "user" });
    return typeof process.exitCode === "number" ? process.exitCode : 0;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    // The help that it printed says it all.
    if (error instanceof CommanderError && error.code === "commander.help" && !json) return BAD_USAGE;
    return report(error, json);
  }
}
