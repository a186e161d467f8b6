import type { Tokenizer } from "../core/prompt.js";
import type { Router, RouterOptions } from "./contract.js";

/** What `route`, `generate` and `fetch` need of the folders above: reading OpenAI bodies, and serving HTTP. */
export interface RouterEdge {
  /** The prompt of an OpenAI body as ids. Without a path the body tells which API it is for. Throws `invalid_request`. */
  readPrompt(body: unknown, path: string | undefined, tokenizer: Tokenizer | undefined): ReadPrompt;
  /** The HTTP handler of one router. */
  handler(router: Router, options: RouterOptions): (request: Request) => Promise<Response>;
}

export interface ReadPrompt {
  path: string;
  tokens: Uint32Array;
  /** Whether the ids are the engine's own. */
  exact: boolean;
  /** How many ids stand for one token of the engine. */
  unitsPerToken: number;
}
