import { rmSync } from "node:fs";
import {
  access,
  constants,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readlink,
  realpath,
  rename,
  stat,
  writeFile,
} from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileError } from "./files.js";
import { inChunks } from "./text.js";

/** Where the bytes of an output go: to its path itself, or to a temporary file that takes its place when all is whole. */
interface Target {
  path: string;
  temporary?: string;
  /** Permission bits of the file that is there already. */
  mode?: number;
}

/**
 * Writes files (path → parts): links are followed, a regular file is replaced when all files are whole and keeps its
 * mode, and anything else (a device, a pipe) is written straight through. Throws `unwritable`.
 */
export async function writeTogether(files: Record<string, Iterable<string>>): Promise<void> {
  const targets: Target[] = [];
  let current = "";
  try {
    for (current in files) {
      const target = await targetOf(current);
      await write(target, files[current]!);
      targets.push(target);
    }
    for (const { path, temporary } of targets) {
      current = path;
      if (temporary === undefined) continue;
      await rename(temporary, path);
      forget(temporary);
    }
  } catch (error) {
    removeTemporaries();
    throw fileError("unwritable", current, error);
  }
}

async function targetOf(path: string): Promise<Target> {
  const { entry, isOpenFile } = await entryOf(path);
  const found = await stat(entry).catch(unlessMissing);
  if (isOpenFile || (found && !found.isFile())) return { path: entry };
  if (found) await access(entry, constants.W_OK);
  return {
    path: entry,
    temporary: `${entry}.${process.pid}.tmp`,
    ...(found ? { mode: found.mode & 0o7777 } : {}),
  };
}

/**
 * The directory entry that a path leads to, which need not exist. Links below /proc stand for files that are open
 * already, /dev/stdout among them: they are opened as they are.
 */
async function entryOf(path: string): Promise<{ entry: string; isOpenFile: boolean }> {
  const mostLinks = 40;
  let next = path;
  for (let i = 0; i < mostLinks; i++) {
    const directory = await realpath(dirname(next));
    const entry = join(directory, basename(next));
    const isOpenFile = directory.startsWith("/proc/");
    const found = await lstat(entry).catch(unlessMissing);
    if (isOpenFile || !found?.isSymbolicLink()) return { entry, isOpenFile };
    next = resolve(directory, await readlink(entry));
  }
  throw new Error("too many links");
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

async function write({ path, temporary, mode }: Target, parts: Iterable<string>): Promise<void> {
  let file: FileHandle;
  // Appending, as a file that is open already may have been opened so.
  if (temporary === undefined) file = await open(path, "a");
  else {
    file = await open(temporary, "wx");
    remember(temporary);
  }
  try {
    // Not at creation, where the process's mask would take bits away.
    if (mode !== undefined) await file.chmod(mode);
    await writeFile(file, inChunks(parts));
  } finally {
    await file.close();
  }
}

// ---- temporary files do not outlive the process

const temporaries = new Set<string>();
const signals = ["SIGINT", "SIGTERM"] as const;

function remember(path: string): void {
  if (temporaries.size === 0) for (const signal of signals) process.once(signal, endBy);
  temporaries.add(path);
}

function forget(path: string): void {
  temporaries.delete(path);
  if (temporaries.size === 0) for (const signal of signals) process.off(signal, endBy);
}

/** What cannot be cleaned up must not hide why the write failed. */
function removeTemporaries(): void {
  for (const path of temporaries) {
    try {
      rmSync(path, { force: true });
    } catch {}
    forget(path);
  }
}

/** Ends as the signal would have done without us, so that the caller learns of it. */
function endBy(signal: NodeJS.Signals): void {
  removeTemporaries();
  process.kill(process.pid, signal);
}

// ---- directories

/** Makes a directory and those above it, and checks that files can be made there. Throws `unwritable`. */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await makePath(path);
    await access(path, constants.W_OK);
  } catch (error) {
    throw fileError("unwritable", path, error);
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
