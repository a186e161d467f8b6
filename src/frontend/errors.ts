import type { ErrorCode } from "../core/errors.js";
import { isOf, isWarmrouteError } from "../core/foreign.js";

/** Faults of an HTTP request itself, before any routing, with their status and how to mend them. */
export const httpCodes = {
  invalid_json: [400, "Send a JSON object in UTF-8."],
  not_found: [404, "Use a path of the OpenAI API that is served here: completions, chat completions or models."],
  method_not_allowed: [405, "Use the method that the allow header names."],
  request_too_large: [413, "Send a shorter request, or raise maxBodyBytes."],
  unsupported_media_type: [415, "Send application/json, and say so in the content-type header."],
  internal_error: [500, "The router failed on this request: please report it. Its log has the request id."],
} as const satisfies Record<string, readonly [status: number, help: string]>;

export type HttpCode = keyof typeof httpCodes;

export class HttpError extends Error {
  readonly code: HttpCode;
  readonly status: number;
  readonly headers: Record<string, string>;

  constructor(code: HttpCode, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.code = code;
    this.status = httpCodes[code][0];
    this.headers = headers;
  }
}

/** OpenAI's `type` of an error, from its status. */
function errorType(status: number): string {
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

/**
 * Any thrown value as `{"error":{"message","type","code","param"?}}`. What is no error of ours becomes a constant
 * body: a foreign message could quote the request.
 */
export function errorResponse(error: unknown): Response {
  if (isOf(error, HttpError)) return respond(error.status, error.code, error.message, undefined, error.headers);
  if (!isWarmrouteError(error)) {
    return errorResponse(new HttpError("internal_error", "the router failed on this request"));
  }
  const headers: Record<string, string> = {};
  // 429 and 503 pass; a second is the least that the header can say.
  if (error.status === 429 || error.status === 503) {
    headers["retry-after"] = String(Math.max(1, Math.ceil((error.retryAfterMs ?? 0) / 1000)));
  }
  return respond(error.status, error.code, error.message, error.path, headers);
}

function respond(
  status: number,
  code: HttpCode | ErrorCode,
  message: string,
  param?: string,
  headers: Record<string, string> = {},
): Response {
  const error = { message, type: errorType(status), code, ...(param === undefined ? {} : { param }) };
  return Response.json({ error }, { status, headers });
}
