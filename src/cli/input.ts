import { readFileSync } from "node:fs";
import { WarmrouteError } from "../core/errors.js";
import { jsonFaultAt, parseJson } from "../core/json.js";
import { fileError, STDIN } from "./files.js";

/** Reads a JSON document from a file, or from standard input for `-` or nothing. Throws `unreadable` or `code`. */
export function readJsonInput(file: string | undefined, code: "invalid_scenario" | "invalid_tokens"): unknown {
  const isStdin = file === undefined || file === "-";
  const name = isStdin ? STDIN : file;
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(isStdin ? 0 : file));
  } catch (cause) {
    throw fileError("unreadable", name, cause);
  }
  if (text.trim() === "") throw new WarmrouteError(code, `${name} is empty`);
  try {
    return parseJson(text);
  } catch {
    // The parser's own message quotes the input, which may be somebody's prompt.
    const { line, column } = jsonFaultAt(text);
    throw new WarmrouteError(code, `${name} is not JSON: see line ${line}, column ${column}`, { line, column });
  }
}
