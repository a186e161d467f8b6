import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** A golden file of test/golden, whose numbers were made outside this project's code. */
export function golden<T>(name: string): T {
  return JSON.parse(readFileSync(fileURLToPath(new URL(`golden/${name}.json`, import.meta.url)), "utf8")) as T;
}
