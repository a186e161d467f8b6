import { describe, expect, test } from "vitest";
import type { Prompt } from "../../src/core/prompt.js";
import { BytesTokenizer } from "../../src/frontend/index.js";

const encode = (prompt: Prompt) => [...new BytesTokenizer().encode(prompt)];
const utf8 = (text: string) => [...new TextEncoder().encode(text)];

describe("the bytes tokenizer", () => {
  test("completions: the prompt's UTF-8 bytes", () => {
    expect(encode({ kind: "texts", texts: ["hé🙂"] })).toEqual([104, 0xc3, 0xa9, 0xf0, 0x9f, 0x99, 0x82]);
  });

  test("chat: role, 0x1F, parts joined by 0x1F, 0x1E", () => {
    expect(
      encode({
        kind: "chat",
        messages: [
          { role: "system", parts: ["a", "b"] },
          { role: "user", parts: [] },
        ],
      }),
    ).toEqual([...utf8("system"), 0x1f, 97, 0x1f, 98, 0x1e, ...utf8("user"), 0x1f, 0x1e]);
  });

  test("token ids pass through", () => {
    expect(encode({ kind: "ids", lists: [[1, 4294967295, 0]] })).toEqual([1, 4294967295, 0]);
  });

  test("several prompts are parted by an id that no byte has", () => {
    expect(encode({ kind: "texts", texts: ["ab", "c"] })).toEqual([97, 98, 0xffffffff, 99]);
    expect(encode({ kind: "ids", lists: [[1], [2, 3]] })).toEqual([1, 0xffffffff, 2, 3]);
  });

  test("a text that outgrows the buffer, with every length of character, loses nothing", () => {
    const tokenizer = new BytesTokenizer();
    const long = "aé€🙂".repeat(20_000);
    expect(tokenizer.encode({ kind: "texts", texts: [long] })).toEqual(new Uint32Array(utf8(long)));
    const parts = Array.from({ length: 300 }, (_, i) => `${i}€`);
    const expected = utf8(`user\x1f${parts.join("\x1f")}\x1e`);
    expect([...tokenizer.encode({ kind: "chat", messages: [{ role: "user", parts }] })]).toEqual(expected);
    // What came before is not left over.
    expect([...tokenizer.encode({ kind: "texts", texts: ["x"] })]).toEqual([120]);
  });

  test("half a surrogate pair becomes U+FFFD, as in every UTF-8 encoder", () => {
    expect(encode({ kind: "texts", texts: ["\ud83d"] })).toEqual([0xef, 0xbf, 0xbd]);
  });

  test("C04: bytes are the one unit: 16 of the 18 bytes of two almost equal texts match", () => {
    const a = encode({ kind: "texts", texts: ["héllo wörld🙂x"] });
    const b = encode({ kind: "texts", texts: ["héllo wörld🙃x"] });
    expect(a).toHaveLength(18);
    expect(a.findIndex((byte, i) => byte !== b[i])).toBe(16);
  });
});
