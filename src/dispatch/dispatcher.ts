import { WarmrouteError } from "../core/errors.js";
import type { EngineKind } from "../core/types.js";
import { requestHeaders } from "./headers.js";

/** The part of `fetch` that dispatching needs; tests and runtimes bring their own. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Where a request goes. */
export interface DispatchTarget {
  workerId: string;
  dpRank: number;
  url: string | undefined;
  engine: EngineKind;
  /** Ranks of the worker; with more than one the rank is named in the request. */
  dpSize: number;
}

export interface DispatchRequest {
  /** Path and query, such as `/v1/completions`. */
  path: string;
  method: string;
  headers: Headers;
  /** Sent as it is, byte for byte. */
  body?: Uint8Array<ArrayBuffer>;
  signal?: AbortSignal;
}

/** Joins a worker's base URL, with or without `/v1` at its end, and an OpenAI path. */
export function joinUrl(base: string, path: string): string {
  return base.replace(/\/+$/, "").replace(/\/v1$/, "") + path;
}

/** Sends requests to workers. */
export class Dispatcher {
  readonly #fetch: Fetch;

  constructor(options: { fetch?: Fetch } = {}) {
    this.#fetch = options.fetch ?? ((url, init) => fetch(url, init));
  }

  /**
   * Resolves with the worker's response as soon as its headers are there, whatever its status.
   * Rejects with `upstream_failed` where the worker cannot be reached, or with the signal's reason.
   */
  async send(target: DispatchTarget, request: DispatchRequest): Promise<Response> {
    const { url, init } = dispatchOf(target, request);
    return this.fetch(target, url, init);
  }

  /** Sends what `dispatchOf` made; resolves and rejects as `send` does. */
  async fetch(target: DispatchTarget, url: string, init: RequestInit): Promise<Response> {
    try {
      return await this.#fetch(url, init);
    } catch (cause) {
      init.signal?.throwIfAborted();
      throw new WarmrouteError("upstream_failed", `worker ${target.workerId} did not answer`, {
        cause,
        details: { workerId: target.workerId, url: shownUrl(target.url), reason: failureReason(cause) },
      });
    }
  }
}

/** What to hand to `fetch`. Throws `upstream_failed` for a worker without a url. */
export function dispatchOf(target: DispatchTarget, request: DispatchRequest): { url: string; init: RequestInit } {
  if (target.url === undefined) {
    throw new WarmrouteError("upstream_failed", `worker ${target.workerId} has no url to send requests to`, {
      details: { workerId: target.workerId },
    });
  }
  const headers = requestHeaders(request.headers);
  if (target.engine === "vllm" && target.dpSize > 1) headers.set("x-data-parallel-rank", String(target.dpRank));
  const init: RequestInit = { method: request.method, headers, redirect: "manual" };
  if (request.body !== undefined) init.body = request.body;
  if (request.signal !== undefined) init.signal = request.signal;
  return { url: joinUrl(target.url, request.path), init };
}

/** `ECONNREFUSED` and its like, where the runtime says so; never a message, which could quote the request. */
export function failureReason(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const code = (cause as { code?: unknown } | null | undefined)?.code;
  return typeof code === "string" ? code : "unreachable";
}

/** A worker's URL for logs and messages: without credentials. */
export function shownUrl(url: string | undefined): string | undefined {
  if (url === undefined || !URL.canParse(url)) return undefined;
  const shown = new URL(url);
  shown.username = shown.password = "";
  return shown.href;
}
