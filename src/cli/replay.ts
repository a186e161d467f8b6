import { basename, join } from "node:path";
import { SingleBar } from "cli-progress";
import type { Command } from "commander";
import { closest } from "../core/closest.js";
import { describe, parseU64 } from "../core/ids.js";
import {
  modes,
  notes,
  Prompts,
  type ReplaySetup,
  type Report,
  readTrace,
  renderTable,
  replayMode,
  summaryDocument,
  vllmDefaults,
} from "../replay/index.js";
import { assertHonoured } from "../router/construct.js";
import { linesOf, STDIN } from "./files.js";
import { numberOption, usageError, wholeOption } from "./options.js";
import { makeDirectory, writeTogether } from "./output-files.js";
import { loadPlugins, type PluginFlags, pluginOptions, withPluginOptions } from "./plugins.js";

interface ReplayFlags extends PluginFlags {
  workers: string;
  mode: string;
  seed: string;
  out?: string;
  blockSize: string;
  blocks: string;
  speed: string;
  skipBad?: boolean;
  itl?: boolean;
  json?: boolean;
}

/** Adds `warmroute replay`. */
export function registerReplay(program: Command): void {
  const command = program
    .command("replay")
    .description("simulate a request trace on model workers, and compare ways to route it");
  withPluginOptions(command)
    .argument("<trace>", "a file in the Mooncake format: one JSON object a line; - reads standard input")
    .option("--workers <n>", "number of workers", "8")
    .option("--mode <names>", `ways to route, separated by commas: ${Object.keys(modes).join(", ")}`, "kv,round_robin")
    .option("--seed <n>", "seed of all random choices", "1")
    .option("--out <dir>", "write requests.jsonl and summary.json there")
    .option("--block-size <tokens>", "tokens a KV block", String(vllmDefaults.blockSize))
    .option("--blocks <n>", "KV blocks of each worker", String(vllmDefaults.blocks))
    .option("--speed <x>", "divide the trace's times by this", "1")
    .option("--skip-bad", "leave bad lines out and count them")
    .option("--itl", "write the time between all tokens of each request")
    .option("--json", "print the summary document alone")
    .action(replay);
}

async function replay(path: string, flags: ReplayFlags): Promise<void> {
  const names = readModes(flags.mode);
  const workers = wholeOption("--workers", flags.workers, 16_384);
  const blockSize = wholeOption("--block-size", flags.blockSize, 1_048_576);
  const blocks = wholeOption("--blocks", flags.blocks, 16_777_216);
  const speed = numberOption("--speed", flags.speed, 0.001, 1_000_000);
  const seed = parseU64(flags.seed, "--seed", "invalid_usage");
  const plugins = names.includes("kv") ? await loadPlugins(flags) : undefined;
  if (plugins) assertHonoured("warmroute replay", plugins);
  if (!plugins) {
    const unused = Object.keys(flags).find((name) => Object.hasOwn(pluginOptions, name)) as
      | keyof PluginFlags
      | undefined;
    const option = unused && pluginOptions[unused];
    if (option) throw usageError(option, `only the mode kv has a policy, so ${option} needs it in --mode`);
  }

  const trace = await readTrace(linesOf(path), { skipBad: flags.skipBad ?? false });
  if (flags.out !== undefined) await makeDirectory(flags.out);
  const prompts = new Prompts(trace, blockSize);
  const setup: ReplaySetup = { trace, prompts, workers, blocks, seed, speed, ...(plugins && { plugins }) };
  const reports = await replayModes(names, setup, flags.itl ?? false);

  const name = path === "-" ? STDIN : basename(path);
  const summary = `${JSON.stringify(summaryDocument(name, setup, reports), null, 2)}\n`;
  if (flags.out !== undefined) {
    await writeTogether({
      [join(flags.out, "requests.jsonl")]: requestLines(reports),
      [join(flags.out, "summary.json")]: [summary],
    });
  }
  process.stdout.write(flags.json ? summary : renderTable(name, setup, reports));
  // The table has the notes; but whoever looks at no more than stderr must learn that there is nothing in it.
  if (flags.json || reports.every(({ completed }) => completed === 0)) {
    for (const note of notes(setup)) process.stderr.write(`${note}\n`);
  }
}

async function replayModes(names: readonly string[], setup: ReplaySetup, withItl: boolean): Promise<Report[]> {
  const bar = new SingleBar({
    stream: process.stderr,
    format: "{mode} [{bar}] {percentage} % | {eta_formatted} left",
    clearOnComplete: true,
    hideCursor: true,
  });
  const terminal = process.stderr.isTTY === true;
  if (terminal) bar.start(names.length * setup.trace.requests.length, 0, { mode: names[0] });
  try {
    const reports: Report[] = [];
    for (const mode of names) {
      reports.push(await replayMode(mode, setup, { withItl, onEnd: () => terminal && bar.increment(1, { mode }) }));
    }
    return reports;
  } finally {
    if (terminal) bar.stop();
  }
}

function* requestLines(reports: readonly Report[]): Generator<string> {
  const group = 512;
  for (const { lines } of reports) {
    for (let i = 0; i < lines.length; i += group) yield `${lines.slice(i, i + group).join("\n")}\n`;
  }
}

function readModes(list: string): string[] {
  const names = list.split(",").map((name) => name.trim());
  names.forEach((name, i) => {
    if (!Object.hasOwn(modes, name)) {
      const known = Object.keys(modes);
      throw usageError(
        "--mode",
        `unknown mode ${describe(name)}; the modes are ${known.join(", ")}`,
        closest(name, known),
      );
    }
    if (names.indexOf(name) < i) throw usageError("--mode", `the mode ${name} is given twice`);
  });
  return names;
}
