/**
 * The JSON documents of an OpenAI event stream, `[DONE]` left out. Lines that carry no data are skipped. The stream is
 * read to its end, so that whoever follows it sees it complete.
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
        if (data && data !== "[DONE]") yield JSON.parse(data);
      }
      if (done) return;
    }
  } finally {
    // A reader that stops early ends the worker's work, too.
    await reader.cancel().catch(() => {});
  }
}
