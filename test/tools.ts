import { spawnSync } from "node:child_process";

/** Skips the test with a message where a program of the system is missing; CI installs them all, so there it fails. */
export function needsProgram(name: string, skip: (note: string) => void): void {
  const isMissing = spawnSync(name, ["--version"]).error !== undefined;
  if (isMissing && process.env.CI) throw new Error(`${name} is not installed`);
  if (isMissing) skip(`${name} is not installed`);
}
