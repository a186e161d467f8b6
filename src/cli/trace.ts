import { once } from "node:events";
import type { Command } from "commander";
import { parseU64 } from "../core/ids.js";
import { generateTrace, MOST_SESSION_TOKENS } from "../replay/index.js";
import { usageError, wholeOption } from "./options.js";
import { writeTogether } from "./output-files.js";
import { inChunks } from "./text.js";

interface TraceFlags {
  seed: string;
  requests: string;
  sessions?: string;
  systemPrompts: string;
  out?: string;
}

/** Adds `warmroute trace`. */
export function registerTrace(program: Command): void {
  program
    .command("trace")
    .description("make a trace of chat sessions for replay; equal options make equal bytes")
    .option("--seed <n>", "seed of all random choices", "1")
    .option("--requests <n>", "number of requests", "500")
    .option("--sessions <n>", "number of sessions they belong to; a fifth of the requests unless given")
    .addHelpText("after", `\nA session whose prompt would exceed ${MOST_SESSION_TOKENS} tokens begins anew.`)
    .option("--system-prompts <n>", "number of different system prompts", "8")
    .option("--out <file>", "write there instead of to standard output")
    .action(trace);
}

async function trace(flags: TraceFlags): Promise<void> {
  const requests = wholeOption("--requests", flags.requests, 10_000_000);
  const sessions =
    flags.sessions === undefined ? Math.ceil(requests / 5) : wholeOption("--sessions", flags.sessions, 10_000_000);
  if (sessions > requests) {
    throw usageError("--sessions", `--sessions ${sessions} is more than --requests ${requests}`);
  }
  const systemPrompts = wholeOption("--system-prompts", flags.systemPrompts, 100_000);
  const lines = withNewlines(
    generateTrace({ seed: parseU64(flags.seed, "--seed", "invalid_usage"), requests, sessions, systemPrompts }),
  );
  if (flags.out !== undefined) return writeTogether({ [flags.out]: lines });
  for (const chunk of inChunks(lines)) {
    if (!process.stdout.write(chunk)) await once(process.stdout, "drain");
  }
}

function* withNewlines(lines: Iterable<string>): Generator<string> {
  for (const line of lines) yield `${line}\n`;
}
