import { WarmrouteError } from "../core/errors.js";
import { disown } from "../core/foreign.js";
import { describe } from "../core/ids.js";
import type { Prompt, Tokenizer } from "../core/prompt.js";
import type { ReadPrompt } from "../router/edge.js";
import { isObject, readChat, readCompletion } from "./prompt.js";
import { BytesTokenizer } from "./tokenizer.js";

/** Every path whose requests are routed by their prompt. */
export const promptReaders: Readonly<Record<string, (body: Record<string, unknown>) => Prompt>> = {
  "/v1/chat/completions": readChat,
  "/v1/completions": readCompletion,
};

const bytes = new BytesTokenizer();

/** Reads the prompt of an OpenAI body; see `RouterEdge.readPrompt`. */
export function readPrompt(body: unknown, path: string | undefined, tokenizer: Tokenizer = bytes): ReadPrompt {
  if (!isObject(body)) throw new WarmrouteError("invalid_request", "the body must be a JSON object", { path: "body" });
  const api = path ?? ("messages" in body ? "/v1/chat/completions" : "/v1/completions");
  const read = Object.hasOwn(promptReaders, api) ? promptReaders[api] : undefined;
  if (!read) {
    const known = Object.keys(promptReaders).join(" and ");
    throw new WarmrouteError("invalid_request", `only ${known} are routed by prompt`, { path: "path" });
  }
  const prompt = read(body);
  const tokens: unknown = tokenizer.encode(prompt);
  if (!(tokens instanceof Uint32Array)) {
    disown(tokens);
    throw new WarmrouteError("invalid_plugin", `the tokenizer must answer a Uint32Array, not ${describe(tokens)}`);
  }
  return {
    path: api,
    tokens,
    exact: tokenizer.exact || prompt.kind === "ids",
    unitsPerToken: tokenizer.unitsPerToken ?? 1,
  };
}
