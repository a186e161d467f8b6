import { access, constants, mkdir, open, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { WarmrouteError } from "../core/errors.js";

/** The lines of a text file, one at a time. Throws `unreadable`. */
export async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = "";
  try {
    const file = await open(path);
    for await (const chunk of file.createReadStream({ encoding: "utf8" })) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop()!;
      yield* lines;
    }
  } catch (error) {
    throw new WarmrouteError("unreadable", `cannot read ${path}: ${reasonOf(error)}`, { cause: error });
  }
  yield rest;
}

/** Writes files (path → parts) under temporary names and renames them when all are whole. Throws `unwritable`. */
export async function writeTogether(files: Record<string, Iterable<string>>): Promise<void> {
  const temporary = (path: string): string => `${path}.${process.pid}.tmp`;
  let current = "";
  try {
    for (current in files) await writeFile(temporary(current), files[current]!);
    for (current in files) await rename(temporary(current), current);
  } catch (error) {
    // What cannot be cleaned up must not hide why the write failed.
    for (const path in files) await rm(temporary(path), { force: true }).catch(() => {});
    throw unwritable(current, error);
  }
}

/** Makes a directory and those above it, and checks that files can be made there. Throws `unwritable`. */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await makePath(path);
    await access(path, constants.W_OK);
  } catch (error) {
    throw unwritable(path, error);
  }
}

/** Not mkdir's `recursive`: that never ends where a file system answers "not found" for a new entry, as /proc does. */
async function makePath(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return;
  const above = dirname(path);
  if (above !== path) await makePath(above);
  await mkdir(path);
}

function unwritable(path: string, error: unknown): WarmrouteError {
  return new WarmrouteError("unwritable", `cannot write ${path}: ${reasonOf(error)}`, { cause: error });
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
