/** Counts as an engine reports them, in its own tokens. */
export interface MockUsage {
  promptTokens: number;
  cachedTokens: number;
  completionTokens: number;
}

export interface ReplyToken {
  /** Which prompt of the request it answers. */
  index: number;
  text: string;
}

interface ReplyOptions {
  chat: boolean;
  id: string;
  model: string;
  workerId: string;
  finishReason: "stop" | "length";
}

const encoder = new TextEncoder();
const sse = (data: unknown) => encoder.encode(`data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);

/** The documents of OpenAI's two completion APIs, whole and as server-sent events. */
export class ReplyFormat {
  readonly #options: ReplyOptions;
  readonly #created = Math.floor(Date.now() / 1000);

  constructor(options: ReplyOptions) {
    this.#options = options;
  }

  whole(texts: readonly string[], usage: MockUsage): object {
    const { chat, finishReason } = this.#options;
    const choices = texts.map((text, index) => ({
      index,
      ...(chat ? { message: { role: "assistant", content: text } } : { text }),
      logprobs: null,
      finish_reason: finishReason,
    }));
    return { ...this.#head(chat ? "chat.completion" : "text_completion"), choices, usage: usageDocument(usage) };
  }

  /** The events of a streamed answer; `usage` is asked at the end, for the chunk that a client may request. */
  async *stream(
    tokens: AsyncIterable<ReplyToken>,
    choices: number,
    usage: () => MockUsage | undefined,
  ): AsyncGenerator<Uint8Array, void> {
    const begun = new Set<number>();
    for await (const { index, text } of tokens) {
      yield sse(this.#chunk(index, text, !begun.has(index), null));
      begun.add(index);
    }
    for (let index = 0; index < choices; index++) {
      yield sse(this.#chunk(index, "", false, this.#options.finishReason));
    }
    const counts = usage();
    if (counts) yield sse({ ...this.#chunkHead(), choices: [], usage: usageDocument(counts) });
    yield sse("[DONE]");
  }

  #chunk(index: number, text: string, first: boolean, finishReason: string | null): object {
    const content = text === "" ? {} : { content: text };
    const delta = first ? { role: "assistant", ...content } : content;
    const choice = { index, ...(this.#options.chat ? { delta } : { text }), logprobs: null };
    return { ...this.#chunkHead(), choices: [{ ...choice, finish_reason: finishReason }] };
  }

  #chunkHead() {
    return this.#head(this.#options.chat ? "chat.completion.chunk" : "text_completion");
  }

  #head(object: string) {
    const { chat, id, model, workerId } = this.#options;
    return {
      id: `${chat ? "chatcmpl" : "cmpl"}-${id}`,
      object,
      created: this.#created,
      model,
      system_fingerprint: `mock-worker-${workerId}`,
    };
  }
}

function usageDocument({ promptTokens, cachedTokens, completionTokens }: MockUsage): object {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
}
