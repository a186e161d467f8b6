import { WarmrouteError } from "../core/errors.js";
import type { ChatMessage, Prompt } from "../core/prompt.js";

/** Reads `messages` of `/v1/chat/completions`; throws `invalid_request` that names the field, never its text. */
export function readChat(body: Record<string, unknown>): Prompt {
  const { messages } = body;
  if (messages === undefined) throw invalid("messages", "is missing");
  if (!Array.isArray(messages)) throw invalid("messages", `must be a list, not ${typeName(messages)}`);
  if (messages.length === 0) throw invalid("messages", "is empty");
  return { kind: "chat", messages: messages.map((message, i) => readMessage(message, `messages[${i}]`)) };
}

function readMessage(message: unknown, path: string): ChatMessage {
  if (!isObject(message)) throw invalid(path, `must be an object, not ${typeName(message)}`);
  const { role, content } = message;
  if (typeof role !== "string") throw invalid(`${path}.role`, `must be a string, not ${typeName(role)}`);
  // Messages that only call tools have no content, or null.
  if (content === undefined || content === null) return { role, parts: [] };
  if (typeof content === "string") return { role, parts: [content] };
  if (!Array.isArray(content)) {
    throw invalid(`${path}.content`, `must be a string, a list of parts or null, not ${typeName(content)}`);
  }
  const parts: string[] = [];
  content.forEach((part: unknown, i) => {
    if (typeof part === "string") parts.push(part);
    else if (!isObject(part)) throw invalid(`${path}.content[${i}]`, `must be an object, not ${typeName(part)}`);
    else if (typeof part.text === "string") parts.push(part.text);
  });
  return { role, parts };
}

/** Reads `prompt` of `/v1/completions`: a string, a list of strings, token ids, or a list of token id lists. */
export function readCompletion(body: Record<string, unknown>): Prompt {
  const { prompt } = body;
  if (prompt === undefined || prompt === null) throw invalid("prompt", "is missing");
  if (typeof prompt === "string") return { kind: "texts", texts: [readText(prompt, "prompt")] };
  if (!Array.isArray(prompt)) throw invalid("prompt", `must be a string or a list, not ${typeName(prompt)}`);
  const first: unknown = prompt[0];
  if (first === undefined) throw invalid("prompt", "is empty");
  if (typeof first === "number") return { kind: "ids", lists: [readIds(prompt, "prompt")] };
  if (Array.isArray(first)) return { kind: "ids", lists: prompt.map((ids, i) => readIds(ids, `prompt[${i}]`)) };
  return { kind: "texts", texts: prompt.map((text, i) => readText(text, `prompt[${i}]`)) };
}

function readText(text: unknown, path: string): string {
  if (typeof text !== "string") throw invalid(path, `must be a string, not ${typeName(text)}`);
  if (text === "") throw invalid(path, "is empty");
  return text;
}

function readIds(ids: unknown, path: string): number[] {
  if (!Array.isArray(ids)) throw invalid(path, `must be a list of token ids, not ${typeName(ids)}`);
  if (ids.length === 0) throw invalid(path, "is empty");
  for (let i = 0; i < ids.length; i++) {
    const id: unknown = ids[i];
    if (typeof id !== "number" || id >>> 0 !== id) {
      throw invalid(`${path}[${i}]`, "must be a token id: an integer from 0 to 4294967295");
    }
  }
  return ids as number[];
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const invalid = (path: string, message: string) =>
  new WarmrouteError("invalid_request", `${path} ${message}`, { path });

function typeName(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
