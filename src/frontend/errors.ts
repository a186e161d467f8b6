import { WarmrouteError } from "../core/errors.js";

/** Faults of an HTTP request itself, before any routing: code → status. */
const httpCodes = {
  invalid_json: 400,
  not_found: 404,
  method_not_allowed: 405,
  request_too_large: 413,
  unsupported_media_type: 415,
} as const;

export class HttpError extends Error {
  readonly code: keyof typeof httpCodes;
  readonly status: number;
  readonly headers: Record<string, string>;

  constructor(code: keyof typeof httpCodes, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.code = code;
    this.status = httpCodes[code];
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
  if (error instanceof HttpError) return respond(error.status, error.code, error.message, undefined, error.headers);
  if (!(error instanceof WarmrouteError)) return respond(500, "internal_error", "the router failed on this request");
  const headers: Record<string, string> = {};
  // 429 and 503 pass; a second is the least that the header can say.
  if (error.status === 429 || error.status === 503) {
    headers["retry-after"] = String(Math.max(1, Math.ceil((error.retryAfterMs ?? 0) / 1000)));
  }
  return respond(error.status, error.code, error.message, error.path, headers);
}

function respond(
  status: number,
  code: string,
  message: string,
  param?: string,
  headers: Record<string, string> = {},
): Response {
  const error = { message, type: errorType(status), code, ...(param === undefined ? {} : { param }) };
  return Response.json({ error }, { status, headers });
}
