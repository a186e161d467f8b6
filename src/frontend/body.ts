import { HttpError } from "./errors.js";
import { isObject } from "./prompt.js";

/** A request's body: the bytes that travel on, and what they say. */
export interface JsonBody {
  bytes: Uint8Array<ArrayBuffer>;
  json: Record<string, unknown>;
}

const decoder = new TextDecoder("utf-8", { fatal: true });

/** Reads a JSON object of at most `maxBytes`. Throws `HttpError` with a message that quotes nothing of the body. */
export async function readJsonBody(request: Request, maxBytes: number): Promise<JsonBody> {
  const type = request.headers.get("content-type");
  if (type !== null && !/^application\/([\w.-]+\+)?json\b/i.test(type)) {
    throw new HttpError("unsupported_media_type", "the content-type must be application/json");
  }
  const bytes = await readBytes(request, maxBytes);
  if (bytes.length === 0) throw new HttpError("invalid_json", "the body is empty; send a JSON object");
  let json: unknown;
  try {
    json = JSON.parse(decoder.decode(bytes));
  } catch (error) {
    const what = error instanceof SyntaxError ? "JSON" : "UTF-8";
    throw new HttpError("invalid_json", `the body is not valid ${what}`);
  }
  if (!isObject(json)) throw new HttpError("invalid_json", "the body must be a JSON object");
  return { bytes, json };
}

async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const tooLarge = () => new HttpError("request_too_large", `the body is larger than ${maxBytes} bytes`);
  const announced = request.headers.get("content-length");
  if (announced !== null) {
    if (Number(announced) > maxBytes) throw tooLarge();
    const bytes = new Uint8Array(await request.arrayBuffer());
    if (bytes.length > maxBytes) throw tooLarge();
    return bytes;
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  const reader = request.body?.getReader();
  for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
    size += next.value.length;
    if (size > maxBytes) {
      await reader?.cancel().catch(() => {});
      throw tooLarge();
    }
    chunks.push(next.value);
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
