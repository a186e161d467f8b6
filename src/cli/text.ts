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
