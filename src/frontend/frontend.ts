import type { Hono } from "hono";
import { WarmrouteError } from "../core/errors.js";
import type { Evidence } from "../core/types.js";
import { Dispatcher, type DispatchTarget, type Fetch, responseHeaders } from "../dispatch/index.js";
import type { Router, Selection } from "../router/contract.js";
import { readJsonBody } from "./body.js";
import { errorResponse, HttpError } from "./errors.js";
import { listModels, type ModelSources, oneModel } from "./models.js";
import { type Prompt, readChat, readCompletion } from "./prompt.js";
import { BytesTokenizer, type Tokenizer } from "./tokenizer.js";

export interface FrontendOptions {
  /** One router for each model, chosen by the request's `model`. */
  routers?: readonly Router[];
  /** Serves every model that no router names; its workers judge the name. */
  fallback?: Router;
  /** Bytes of the canonical prompt unless given. */
  tokenizer?: Tokenizer;
  /** Sends requests to workers; the runtime's own `fetch` unless given. */
  fetch?: Fetch;
  /** Largest request body in bytes; 8 MiB unless given. Larger ones are answered 413. */
  maxBodyBytes?: number;
  /** Called with each decision, all of its candidates included, before the request is sent. */
  onDecision?: (selection: Selection) => void;
  /** Called with what failed and the request's id; for a log. */
  onError?: (error: unknown, requestId: string) => void;
}

type Handler = (request: Request, requestId: string) => Promise<Response> | Response;

/** The OpenAI-compatible HTTP frontend: one `fetch` handler that runs wherever `Request` and `Response` exist. */
export class HttpFrontend {
  readonly #routers: ReadonlyMap<string, Router>;
  readonly #fallback: Router | undefined;
  readonly #tokenizer: Tokenizer;
  readonly #dispatcher: Dispatcher;
  readonly #maxBodyBytes: number;
  readonly #options: FrontendOptions;
  #app: Promise<Hono> | undefined;
  #closing = false;

  constructor(options: FrontendOptions) {
    this.#options = options;
    this.#routers = new Map(options.routers?.map((router) => [router.model, router]));
    this.#fallback = options.fallback;
    this.#tokenizer = options.tokenizer ?? new BytesTokenizer();
    this.#dispatcher = new Dispatcher(options.fetch === undefined ? {} : { fetch: options.fetch });
    this.#maxBodyBytes = options.maxBodyBytes ?? 8 * 1024 * 1024;
  }

  /** Answers one request; never rejects. Bound, so that it can be handed to a server as it is. */
  readonly fetch = async (request: Request): Promise<Response> => {
    this.#app ??= this.#build();
    return (await this.#app).fetch(request);
  };

  /** Refuses new requests with 503; those in flight go on. Closing the routers is their owner's. */
  close(): void {
    this.#closing = true;
  }

  async #build(): Promise<Hono> {
    const { Hono } = await import("hono");
    const app = new Hono();
    const route = (method: string, path: string, handler: Handler) => {
      app.on(method, path, (c) => this.#guard(c.req.raw, handler));
      app.all(path, (c) =>
        this.#guard(c.req.raw, () => {
          throw new HttpError("method_not_allowed", `this path takes ${method} only`, { allow: method });
        }),
      );
    };
    route("POST", "/v1/chat/completions", (request, id) => this.#complete(request, id, readChat));
    route("POST", "/v1/completions", (request, id) => this.#complete(request, id, readCompletion));
    route("GET", "/v1/models", (request) => listModels(this.#models(request)));
    // Names of models may have slashes, and clients send these as they are.
    route("GET", `${modelPath}:id{.+}`, (request) => oneModel(modelIdOf(request), this.#models(request)));
    route("GET", "/health", () => Response.json({ status: "ok" }));
    app.notFound((c) =>
      this.#guard(c.req.raw, () => {
        throw new HttpError("not_found", "there is no such path; see /v1/models");
      }),
    );
    return app;
  }

  /** Gives every answer its request id, and every failure OpenAI's shape. */
  async #guard(request: Request, handler: Handler): Promise<Response> {
    const requestId = requestIdOf(request);
    let response: Response;
    try {
      response = await handler(request, requestId);
    } catch (error) {
      // A client that left reads no answer; the status only closes the books.
      if (request.signal.aborted) response = new Response(null, { status: 499 });
      else {
        this.#options.onError?.(error, requestId);
        response = errorResponse(error);
      }
    }
    response.headers.set("x-request-id", requestId);
    return response;
  }

  async #complete(
    request: Request,
    requestId: string,
    read: (body: Record<string, unknown>) => Prompt,
  ): Promise<Response> {
    if (this.#closing) throw new WarmrouteError("shutting_down", "the router is closing");
    const { bytes, json } = await readJsonBody(request, this.#maxBodyBytes);
    const router = this.#routerOf(json.model);
    const prompt = read(json);
    const { onDecision } = this.#options;
    const selection = await router.select(
      { requestId, tokens: this.#tokenizer.encode(prompt), explain: onDecision !== undefined },
      { signal: request.signal },
    );
    onDecision?.(selection);
    const { pathname, search } = new URL(request.url);
    const headers = new Headers(request.headers);
    headers.set("x-request-id", requestId);
    const answer = await selection.track(
      this.#dispatcher.send(targetOf(selection), {
        path: pathname + search,
        method: "POST",
        headers,
        body: bytes,
        signal: request.signal,
      }),
    );
    const exact = this.#tokenizer.exact || prompt.kind === "ids";
    return decorated(answer, selection, evidenceOf(selection, exact));
  }

  #models({ signal }: Request): ModelSources {
    const named = [...this.#routers.keys()];
    const workers = this.#fallback?.workers();
    return { named, ...(workers === undefined ? {} : { workers }), dispatcher: this.#dispatcher, signal };
  }

  #routerOf(model: unknown): Router {
    if (model !== undefined && typeof model !== "string") {
      throw new WarmrouteError("invalid_request", "model must be a string", { path: "model" });
    }
    const only = this.#routers.size === 1 && model === undefined ? [...this.#routers.values()][0] : undefined;
    const router = only ?? this.#routers.get(model ?? "") ?? this.#fallback;
    if (router) return router;
    if (model === undefined) throw new WarmrouteError("invalid_request", "model is missing", { path: "model" });
    throw new WarmrouteError("model_not_found", "no such model here; see /v1/models", { path: "model" });
  }
}

/** A frontend over routers that exist. */
export const createFrontend = (options: FrontendOptions): HttpFrontend => new HttpFrontend(options);

const modelPath = "/v1/models/";

function modelIdOf(request: Request): string {
  const id = new URL(request.url).pathname.slice(modelPath.length);
  try {
    return decodeURIComponent(id);
  } catch {
    // What is no encoding of anything names no model.
    return id;
  }
}

/** The client's `x-request-id` if it is a plain short word, else a new one. */
function requestIdOf(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && /^[\x21-\x7e]{1,128}$/.test(given) ? given : crypto.randomUUID();
}

function targetOf({ worker, record }: Selection): DispatchTarget {
  return { ...worker, url: record.url, engine: record.engine, dpSize: record.dpSize };
}

/** Overlap counted in other tokens than the engine's is an estimate, whatever the index rests on. */
function evidenceOf(selection: Selection, exact: boolean): Evidence {
  return exact || selection.evidence === "none" ? selection.evidence : "approximate";
}

/** The worker's answer, with the decision in its headers. */
function decorated(answer: Response, selection: Selection, evidence: Evidence): Response {
  const headers = responseHeaders(answer.headers);
  headers.set("x-warmroute-worker", selection.worker.workerId);
  headers.set("x-warmroute-dp-rank", String(selection.worker.dpRank));
  headers.set("x-warmroute-overlap-blocks", String(selection.overlap.deviceBlocks));
  headers.set("x-warmroute-evidence", evidence);
  return new Response(answer.body, { status: answer.status, statusText: answer.statusText, headers });
}
