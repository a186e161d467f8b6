import { WarmrouteError } from "../core/errors.js";
import { checkFields, fieldsOf } from "../core/fields.js";
import { type U64Input, workerIdString } from "../core/ids.js";
import type { Prompt } from "../core/prompt.js";
import type { RouterEvent } from "../core/types.js";
import {
  BytesTokenizer,
  errorResponse,
  HttpError,
  isObject,
  readChat,
  readCompletion,
  readJsonBody,
} from "../frontend/index.js";
import { hashTokens } from "../kernel/hash.js";
import { decodeMs, prefillMs } from "../replay/timing.js";
import { type HeldPrompt, MockCache } from "./mock-cache.js";
import { type MockUsage, ReplyFormat } from "./mock-reply.js";

export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

export interface MockWorkerOptions {
  workerId: U64Input;
  /** The one model it serves; `mock` unless given. */
  model?: string;
  /** Tokens (bytes of text) a block; 64 unless given. */
  blockSize?: number;
  /** Blocks of its cache; 4096 unless given. */
  capacityBlocks?: number;
  /** Longest prompt in the engine's tokens; 131072 unless given. Longer ones are refused, as engines do. */
  maxModelLength?: number;
  /** Divides every duration; 1 unless given, `Infinity` for no waiting at all. */
  speedUp?: number;
  /** Waits, or rejects when the signal fires; timers unless given. */
  sleep?: Sleep;
  /** Gets each change of the cache before the answer's first token. Names of blocks are sequence hashes. */
  onKvEvent?: (event: RouterEvent) => void | Promise<void>;
}

const fields = fieldsOf<MockWorkerOptions>({
  workerId: "any",
  model: "text",
  blockSize: "count",
  capacityBlocks: "count",
  maxModelLength: "count",
  speedUp: "any",
  sleep: "call",
  onKvEvent: "call",
});

/** A prompt, and what it counts for: `perToken` of our tokens are one of the engine's. */
interface EncodedPrompt {
  prompt: Prompt;
  tokens: Uint32Array;
  perToken: number;
  engineTokens: number;
}

// One token each. The reply is the same for every prompt: nothing here thinks.
const reply =
  "This answer is simulated : a mock worker says the same words to everyone , but it keeps a real prefix cache ."
    .split(" ")
    .map((word, i) => (i === 0 || /^\W$/.test(word) ? word : ` ${word}`));
const maxBodyBytes = 64 * 1024 * 1024;
// An engine's token is about four bytes of text, the router's byte tokens are one.
const bytesPerToken = 4;

/**
 * An OpenAI-compatible worker without a model: it keeps a prefix cache, takes as long as the engine model of the
 * replay says, and reports `cached_tokens` as an engine would, in tokens of four bytes of text (token ids count as
 * they are). Prompts are prefilled one at a time; decoding runs side by side.
 */
export class MockWorker {
  readonly workerId: string;
  readonly model: string;
  readonly blockSize: number;
  readonly #cache: MockCache;
  readonly #tokenizer = new BytesTokenizer();
  readonly #maxModelLength: number;
  readonly #speedUp: number;
  readonly #sleep: Sleep;
  readonly #onKvEvent: (event: RouterEvent) => void | Promise<void>;
  #prefills: Promise<void> = Promise.resolve();
  #requests = 0;
  #running = 0;

  /** Throws `invalid_config` or `invalid_worker` naming the option. */
  constructor(options: MockWorkerOptions) {
    checkFields(options, fields, "options", "invalid_config");
    this.workerId = workerIdString(options.workerId);
    this.model = options.model ?? "mock";
    this.blockSize = options.blockSize ?? 64;
    this.#cache = new MockCache(options.capacityBlocks ?? 4096);
    this.#maxModelLength = options.maxModelLength ?? 131_072;
    this.#speedUp = options.speedUp ?? 1;
    if (!(this.#speedUp > 0)) {
      throw new WarmrouteError("invalid_config", "speedUp must be a number above 0", { path: "speedUp" });
    }
    this.#sleep = options.sleep ?? sleepByTimer;
    this.#onKvEvent = options.onKvEvent ?? (() => {});
  }

  /** Requests that came in, those running now, and blocks in the cache. */
  stats(): { requests: number; running: number; cachedBlocks: number } {
    return { requests: this.#requests, running: this.#running, cachedBlocks: this.#cache.blocks };
  }

  readonly fetch = async (request: Request): Promise<Response> => {
    try {
      return await this.#route(request);
    } catch (error) {
      return errorResponse(error);
    }
  };

  #route(request: Request): Promise<Response> | Response {
    const { pathname } = new URL(request.url);
    switch (`${request.method} ${pathname}`) {
      case "POST /v1/chat/completions":
        return this.#complete(request, true);
      case "POST /v1/completions":
        return this.#complete(request, false);
      case "GET /v1/models":
        return Response.json({
          object: "list",
          data: [{ id: this.model, object: "model", created: 0, owned_by: "warmroute" }],
        });
      case "GET /health":
        return Response.json({ status: "ok" });
      default:
        throw new HttpError("not_found", "there is no such path");
    }
  }

  async #complete(request: Request, chat: boolean): Promise<Response> {
    const { json } = await readJsonBody(request, maxBodyBytes);
    const { limit, stream } = readSettings(json);
    const prompts = separate(chat ? readChat(json) : readCompletion(json)).map((prompt) => this.#encode(prompt));
    if (prompts.some(({ engineTokens }) => engineTokens > this.#maxModelLength)) {
      const path = chat ? "messages" : "prompt";
      throw new WarmrouteError("invalid_request", `${path} is longer than ${this.#maxModelLength} tokens`, { path });
    }
    const words = reply.slice(0, limit);
    const format = new ReplyFormat({
      chat,
      id: `mock-${this.workerId}-${++this.#requests}`,
      model: typeof json.model === "string" ? json.model : this.model,
      workerId: this.workerId,
      finishReason: words.length < reply.length ? "length" : "stop",
    });
    const stop = new AbortController();
    const signal = AbortSignal.any([request.signal, stop.signal]);
    const usage: MockUsage = { promptTokens: 0, cachedTokens: 0, completionTokens: 0 };
    const tokens = this.#generate(prompts, words, usage, signal);
    if (!stream) {
      const texts = prompts.map(() => "");
      for await (const { index, text } of tokens) texts[index] += text;
      return Response.json(format.whole(texts, usage));
    }
    const withUsage = isObject(json.stream_options) && json.stream_options.include_usage === true;
    const chunks = format.stream(tokens, prompts.length, () => (withUsage ? usage : undefined));
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const { done, value } = await chunks.next();
          if (done) controller.close();
          else controller.enqueue(value);
        },
        async cancel() {
          stop.abort();
          await chunks.return(undefined).catch(() => {});
        },
      },
      { highWaterMark: 0 },
    );
    return new Response(body, { headers: { "content-type": "text/event-stream", "cache-control": "no-cache" } });
  }

  #encode(prompt: Prompt): EncodedPrompt {
    const tokens = this.#tokenizer.encode(prompt);
    const perToken = prompt.kind === "ids" ? 1 : bytesPerToken;
    return { prompt, tokens, perToken, engineTokens: Math.ceil(tokens.length / perToken) };
  }

  /** Runs the prompts one after the other, token by token; frees their blocks however it ends. */
  async *#generate(
    prompts: readonly EncodedPrompt[],
    words: readonly string[],
    usage: MockUsage,
    signal: AbortSignal,
  ): AsyncGenerator<{ index: number; text: string }, void> {
    this.#running++;
    try {
      for (const [index, encoded] of prompts.entries()) {
        const held = await this.#prefill(encoded, signal);
        try {
          usage.promptTokens += encoded.engineTokens;
          usage.cachedTokens += Math.floor((held.cachedBlocks * this.blockSize) / encoded.perToken);
          for (const text of words) {
            await this.#wait(decodeMs(this.#cache.usage), signal);
            usage.completionTokens++;
            yield { index, text };
          }
        } finally {
          this.#cache.release(held);
        }
        await this.#keepReply(encoded.prompt, words.join(""));
      }
    } finally {
      this.#running--;
    }
  }

  /** Waits for its turn, then for as long as the tokens that the cache lacks take. */
  async #prefill({ tokens, perToken }: EncodedPrompt, signal: AbortSignal): Promise<HeldPrompt> {
    const turn = this.#prefills;
    let done!: () => void;
    this.#prefills = new Promise((resolve) => {
      done = resolve;
    });
    try {
      await turn;
      signal.throwIfAborted();
      const held = await this.#hold(tokens);
      try {
        // The last token is always computed: the first answer comes from it.
        const missing = Math.max(1, Math.ceil((tokens.length - held.cachedBlocks * this.blockSize) / perToken));
        await this.#wait(prefillMs(missing), signal);
        return held;
      } catch (error) {
        this.#cache.release(held);
        throw error;
      }
    } finally {
      done();
    }
  }

  /** What was generated stays in the cache like a prompt, so that the next turn of a chat finds it. */
  async #keepReply(prompt: Prompt, text: string): Promise<void> {
    const whole = continued(prompt, text);
    if (whole === undefined) return;
    this.#cache.release(await this.#hold(this.#tokenizer.encode(whole)));
  }

  /** Takes the prompt's blocks and tells of the changes, as engines do when they allocate. */
  async #hold(tokens: Uint32Array): Promise<HeldPrompt> {
    const hashes = hashTokens(tokens, this.blockSize);
    const held = this.#cache.hold(hashes);
    const { cachedBlocks, heldBlocks, evicted } = held;
    if (evicted.length > 0) await this.#emit({ removed: { block_hashes: evicted.map(String) } });
    if (heldBlocks === cachedBlocks) return held;
    const blocks = [];
    for (let i = cachedBlocks; i < heldBlocks; i++) {
      blocks.push({ block_hash: String(hashes.sequenceHashes[i]), tokens_hash: String(hashes.blockHashes[i]) });
    }
    const parent = cachedBlocks === 0 ? null : String(hashes.sequenceHashes[cachedBlocks - 1]);
    await this.#emit({ stored: { parent_hash: parent, blocks } });
    return held;
  }

  async #emit(data: RouterEvent["event"]["data"]): Promise<void> {
    await this.#onKvEvent({ worker_id: this.workerId, storage_tier: "device", event: { dp_rank: 0, data } });
  }

  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const scaled = ms / this.#speedUp;
    if (scaled > 0) await this.#sleep(scaled, signal);
  }
}

/** What a body says beside its prompt, as far as a mock heeds it; null is as absent. Throws `invalid_request`. */
function readSettings(json: Record<string, unknown>): { limit: number | undefined; stream: boolean } {
  const read = <T>(path: string, wanted: string, fits: (value: unknown) => value is T): T | undefined => {
    const value = json[path] ?? undefined;
    if (value === undefined || fits(value)) return value;
    throw new WarmrouteError("invalid_request", `${path} must be ${wanted}`, { path });
  };
  const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 1;
  const limits = ["max_completion_tokens", "max_tokens"].map((path) =>
    read(path, "a whole number, at least 1", isCount),
  );
  read("n", "1: a mock worker has one answer", (value): value is 1 => value === 1);
  const stream = read("stream", "true or false", (value): value is boolean => typeof value === "boolean");
  return { limit: limits[0] ?? limits[1], stream: stream === true };
}

/** An engine runs every prompt of a request on its own. */
function separate(prompt: Prompt): Prompt[] {
  switch (prompt.kind) {
    case "chat":
      return [prompt];
    case "texts":
      return prompt.texts.map((text) => ({ kind: "texts", texts: [text] }));
    case "ids":
      return prompt.lists.map((ids) => ({ kind: "ids", lists: [ids] }));
  }
}

/** A prompt with its reply; the reply to token ids has no ids here. */
function continued(prompt: Prompt, text: string): Prompt | undefined {
  if (prompt.kind === "ids") return undefined;
  if (prompt.kind === "texts") return { kind: "texts", texts: [prompt.texts[0] + text] };
  return { kind: "chat", messages: [...prompt.messages, { role: "assistant", parts: [text] }] };
}

function sleepByTimer(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
