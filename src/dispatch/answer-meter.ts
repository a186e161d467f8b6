/** Token counts as an engine reports them with an answer. */
export interface ReportedUsage {
  prompt_tokens?: number;
  completion_tokens?: number;
  total_tokens?: number;
}

/** What of an answer is kept to find its usage: at most so many characters. */
const mostKept = 1 << 20;

/**
 * Reads along with an OpenAI answer: counts the items of an event stream, one for each generated token or few, and finds
 * the usage that the engine reports at its end. Of any other answer it knows nothing.
 */
export class AnswerMeter {
  readonly #isStream: boolean;
  readonly #isJson: boolean;
  readonly #decoder = new TextDecoder();
  /** The line that is not over yet, or the whole answer; undefined when it got too long. */
  #rest: string | undefined = "";
  #last: string | undefined;

  constructor(contentType: string | null) {
    this.#isStream = contentType?.startsWith("text/event-stream") ?? false;
    this.#isJson = contentType?.startsWith("application/json") ?? false;
  }

  /** Reads the next bytes; answers how many items they complete. */
  read(chunk: Uint8Array): number {
    if (!this.#isStream && !this.#isJson) return 0;
    const text = this.#decoder.decode(chunk, { stream: true });
    if (this.#rest !== undefined) this.#rest += text;
    else if (this.#isStream && text.includes("\n")) this.#rest = text.slice(text.indexOf("\n") + 1);
    let items = 0;
    if (this.#isStream && this.#rest !== undefined) {
      const lines = this.#rest.split("\n");
      this.#rest = lines.pop();
      for (const line of lines) if (this.#isItem(line)) items++;
    }
    if (this.#rest !== undefined && this.#rest.length > mostKept) this.#rest = undefined;
    return items;
  }

  #isItem(line: string): boolean {
    if (!line.startsWith("data:") || line.startsWith("data: [DONE]")) return false;
    if (line.includes('"usage"')) this.#last = line.slice("data:".length);
    // What has no choices reports only the usage.
    return !/"choices": ?\[\]/.test(line);
  }

  /** What the engine reported, once all is read. */
  get usage(): ReportedUsage | undefined {
    const text = this.#isStream ? this.#last : this.#rest;
    if (!text?.includes('"usage"')) return undefined;
    try {
      return JSON.parse(text).usage ?? undefined;
    } catch {
      return undefined;
    }
  }
}
