import { WarmrouteError } from "../core/errors.js";

/**
 * The JSON documents of an OpenAI event stream, `[DONE]` left out. Lines that carry no data are skipped. The stream is
 * read to its end, so that whoever follows it sees it complete. Throws `upstream_failed` for data that is no JSON.
 */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<unknown, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const lines = (rest + decoder.decode(value, { stream: !done })).split(/\r\n|\n|\r(?!$)/);
      rest = done ? "" : lines.pop()!;
      for (const line of lines) {
        const data = /^data: ?(.*)$/.exec(line)?.[1];
        if (data && data !== "[DONE]") yield parseAnswer(data);
      }
      if (done) return;
    }
  } finally {
    // A reader that stops early ends the worker's work, too.
    await reader.cancel().catch(() => {});
  }
}

/** What a worker's JSON says. Throws `upstream_failed`, whose message quotes nothing of the answer. */
export function parseAnswer(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new WarmrouteError("upstream_failed", "the worker's answer is not JSON");
  }
}
