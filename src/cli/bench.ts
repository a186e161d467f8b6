import { type Command, InvalidArgumentError } from "commander";

interface Bench {
  runBench(
    options: { only?: readonly string[]; json?: boolean; quick?: boolean },
    write: (text: string) => void,
    warn: (text: string) => void,
  ): Promise<number>;
}

function names(value: string): string[] {
  const list = value.split(",").map((name) => name.trim());
  if (list.some((name) => name === "")) throw new InvalidArgumentError("Give row names separated by commas.");
  return list;
}

/** Adds `warmroute bench`. The bench is a bundle of its own beside dist/cli/, loaded when the command runs. */
export function registerBench(program: Command): void {
  program
    .command("bench")
    .description("measure the kernel against native code and plain JavaScript, as ratios")
    .option("--only <names>", "run only these rows, separated by commas", names)
    .option("--json", "print one JSON document")
    .option("--quick", "few rounds on small data: checks answers rather than speed")
    .action(async (options: { only?: string[]; json?: boolean; quick?: boolean }) => {
      const bundle = new URL("../bench.js", import.meta.url).href;
      const bench = (await import(bundle)) as Bench;
      const to = (stream: NodeJS.WriteStream) => (text: string) => void stream.write(text);
      process.exitCode = await bench.runBench(options, to(process.stdout), to(process.stderr));
    });
}
