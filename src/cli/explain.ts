import type { Command } from "commander";
import { readJsonInput } from "./input.js";

/** `warmroute explain`: one decision from written-down inputs. */
export function registerExplain(program: Command): void {
  program
    .command("explain")
    .description("explain one decision from a scenario file")
    .argument("[scenario]", "JSON scenario; - or nothing reads standard input")
    .option("--json", "the default")
    .action(async (file: string | undefined) => {
      const { explainScenario } = await import("./scenario.js");
      process.stdout.write(`${JSON.stringify(explainScenario(readJsonInput(file, "invalid_scenario")))}\n`);
    });
}
