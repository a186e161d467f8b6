import type { PolicyProblem } from "../plugins/problem.js";

const CHUNK = 1 << 16;

/** The same text in parts of some 64 KiB: few writes, and never the whole in memory. */
export function* inChunks(parts: Iterable<string>): Generator<string> {
  let chunk = "";
  for (const part of parts) {
    chunk += part;
    if (chunk.length < CHUNK) continue;
    yield chunk;
    chunk = "";
  }
  if (chunk !== "") yield chunk;
}

export const oneLine = (text: string): string => text.replace(/\s*[\r\n]\s*/g, " ");

/** One error of a policy file, for people; `place` says where it is. */
export function problemLine(place: string, { code, message, suggestion }: PolicyProblem): string {
  const meant = suggestion === undefined ? "" : `; did you mean ${suggestion}?`;
  return `${place}: ${code}: ${oneLine(message)}${meant}`;
}
