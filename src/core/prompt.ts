/** One chat message as a tokenizer sees it: content that is no text has no part here. */
export interface ChatMessage {
  role: string;
  parts: string[];
}

/** What a request asks the model to read. Only completions may hold several texts or lists of ids. */
export type Prompt =
  | { kind: "chat"; messages: ChatMessage[] }
  | { kind: "texts"; texts: string[] }
  | { kind: "ids"; lists: readonly number[][] };

/** Turns a prompt into the ids that are hashed. */
export interface Tokenizer {
  /** Whether the ids are the engine's own; if not, every overlap is approximate. */
  readonly exact: boolean;
  /** How many ids stand for one token of the engine; 1 unless given. */
  readonly unitsPerToken?: number;
  encode(prompt: Prompt): Uint32Array;
}
