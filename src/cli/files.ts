import { open } from "node:fs/promises";
import { WarmrouteError } from "../core/errors.js";

export const STDIN = "standard input";
export const STDOUT = "standard output";

/** What to do about streams, which have no place where they could exist or not. */
const streamHelp: Record<string, string> = {
  [STDIN]: "Send it through a pipe, or give the name of a file.",
  [STDOUT]: "Check that it can be written to.",
};

const noRoom = "Make room there, or write elsewhere.";
/** What to do where neither a file's existence nor its permissions are at fault, by Node's code. */
const reasonHelp: Record<string, string> = {
  EFBIG: noRoom,
  ENOSPC: noRoom,
  EDQUOT: noRoom,
  EISDIR: "Name a file: this is a directory.",
  ENOTDIR: "Name a directory: something in the path is a file.",
  ERR_ENCODING_INVALID_ENCODED_DATA: "Save it as UTF-8.",
};

/** What an error says that came of a file, or of a standard stream. */
export function fileError(code: "unreadable" | "unwritable", name: string, error: unknown): WarmrouteError {
  const verb = code === "unreadable" ? "read" : "write";
  const reason = error instanceof Error ? error.message : String(error);
  const message = name === "" ? `cannot ${verb} a file without a name` : `cannot ${verb} ${name}: ${reason}`;
  const help = reasonHelp[(error as { code?: string }).code ?? ""] ?? streamHelp[name];
  return new WarmrouteError(code, message, { cause: error, ...(help === undefined ? {} : { details: { help } }) });
}

/** The lines of a text file, or of standard input for `-`, one at a time. Throws `unreadable`. */
export async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = "";
  try {
    const input =
      path === "-" ? process.stdin.setEncoding("utf8") : (await open(path)).createReadStream({ encoding: "utf8" });
    for await (const chunk of input) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop()!;
      yield* lines;
    }
  } catch (error) {
    throw fileError("unreadable", path === "-" ? STDIN : path, error);
  }
  yield rest;
}
