import type { Prompt, Tokenizer } from "../core/prompt.js";

const unitSeparator = 0x1f;
const recordSeparator = 0x1e;
// Parts the prompts of one request. No byte and no real vocabulary has this id, so a prefix of the first prompt
// matches as if it came alone, and nothing matches across the seam.
const seam = 0xffffffff;

/**
 * The default tokenizer: one token for each UTF-8 byte of the canonical prompt. Completions: the prompt itself.
 * Chat: for each message its role, 0x1F, its text parts joined by 0x1F, 0x1E. Token ids pass through.
 *
 * Bytes are encoded into one scratch buffer that is kept, and widened from there in one copy.
 */
export class BytesTokenizer implements Tokenizer {
  readonly exact = false;
  /** Engines take about one token for four bytes. */
  readonly unitsPerToken = 4;
  readonly #encoder = new TextEncoder();
  #scratch = new Uint8Array(4096);
  #length = 0;

  encode(prompt: Prompt): Uint32Array {
    switch (prompt.kind) {
      case "chat":
        return this.#encodeChat(prompt.messages);
      case "texts":
        return joined(prompt.texts.map((text) => this.#encodeText(text)));
      case "ids":
        return joined(prompt.lists);
    }
  }

  #encodeChat(messages: Extract<Prompt, { kind: "chat" }>["messages"]): Uint32Array {
    this.#length = 0;
    for (const { role, parts } of messages) {
      this.#text(role);
      this.#byte(unitSeparator);
      for (let i = 0; i < parts.length; i++) {
        if (i > 0) this.#byte(unitSeparator);
        this.#text(parts[i]!);
      }
      this.#byte(recordSeparator);
    }
    return this.#take();
  }

  #encodeText(text: string): Uint32Array {
    this.#length = 0;
    this.#text(text);
    return this.#take();
  }

  #text(text: string): void {
    const { read, written } = this.#encoder.encodeInto(text, this.#scratch.subarray(this.#length));
    this.#length += written;
    if (read === text.length) return;
    // A UTF-16 unit is at most 3 bytes, so the rest fits now.
    this.#reserve((text.length - read) * 3);
    this.#text(text.slice(read));
  }

  #byte(value: number): void {
    this.#reserve(1);
    this.#scratch[this.#length++] = value;
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#scratch.length) return;
    const larger = new Uint8Array(Math.max(this.#length + bytes, this.#scratch.length * 2));
    larger.set(this.#scratch.subarray(0, this.#length));
    this.#scratch = larger;
  }

  #take(): Uint32Array {
    return new Uint32Array(this.#scratch.subarray(0, this.#length));
  }
}

/** One sequence of ids from several, with the seam between them. */
function joined(lists: readonly ArrayLike<number>[]): Uint32Array {
  if (lists.length === 1 && lists[0] instanceof Uint32Array) return lists[0];
  const tokens = new Uint32Array(lists.reduce((sum, list) => sum + list.length + 1, -1));
  let at = 0;
  for (const list of lists) {
    if (at > 0) tokens[at++] = seam;
    tokens.set(list, at);
    at += list.length;
  }
  return tokens;
}
