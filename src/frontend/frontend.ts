import type { Hono } from "hono";
import { WarmrouteError } from "../core/errors.js";
import { readGraceMs } from "../core/fields.js";
import { disown } from "../core/foreign.js";
import type { Tokenizer } from "../core/prompt.js";
import { Dispatcher, responseHeaders } from "../dispatch/index.js";
import type { RouterPlugins } from "../plugins/bundle.js";
import type { WorkerSelectionFactory } from "../plugins/worker-selection/contract.js";
import type { Selection } from "../router/contract.js";
import type { RouterEdge } from "../router/edge.js";
import { hintsOf } from "../router/hints.js";
import type { KvRouter } from "../router/kv-router.js";
import { targetOf } from "../router/selection.js";
import { readJsonBody } from "./body.js";
import { errorResponse, HttpError } from "./errors.js";
import { ModelTable } from "./model-table.js";
import { listModels, type ModelSources, oneModel } from "./models.js";
import { checkFrontendOptions, type FrontendOptions, type ModelOptions } from "./options.js";
import { promptReaders, readPrompt } from "./read-prompt.js";

type Handler = (request: Request, requestId: string) => Promise<Response> | Response;

/** The OpenAI-compatible HTTP frontend: one `fetch` handler that runs wherever `Request` and `Response` exist. */
export class HttpFrontend {
  readonly #models: ModelTable;
  readonly #tokenizer: Tokenizer | undefined;
  readonly #dispatcher: Dispatcher;
  readonly #maxBodyBytes: number;
  readonly #options: FrontendOptions;
  #app: Promise<Hono> | undefined;
  #closed: Promise<void> | undefined;

  /**
   * Throws `invalid_config` for options that are unknown or wrong and for two routers of one model, and
   * `role_not_served` for a router that has workers of other roles than aggregated.
   */
  constructor(options: FrontendOptions) {
    checkFrontendOptions(options);
    this.#options = options;
    this.#models = new ModelTable(options, openAiEdge);
    if (options.plugins) this.#models.use(options.plugins);
    this.#tokenizer = options.tokenizer;
    this.#dispatcher = new Dispatcher(options.fetch === undefined ? {} : { fetch: options.fetch });
    this.#maxBodyBytes = options.maxBodyBytes ?? 8 * 1024 * 1024;
  }

  /**
   * The bundle that this frontend's routers are built from. Throws `already_started` once one is built,
   * `role_not_served`, and `invalid_config` where a router that was handed in has other plugins.
   */
  plugins(plugins: RouterPlugins): this {
    this.#models.use(plugins);
    return this;
  }

  /** @deprecated Use `plugins(bundle.withWorkerSelection(factory))`; removed in 1.7. */
  workerSelectionPolicyFactory(factory: WorkerSelectionFactory): this {
    return this.plugins(this.#models.plugins.withWorkerSelection(factory));
  }

  /** Builds the routers of `models`, all or none. Before that no request is served, so that no port is bound in vain. */
  async start(): Promise<this> {
    await this.#models.start();
    return this;
  }

  /** Builds a router for one more model. Throws `already_started` if the model is served. */
  addModel(options: ModelOptions): Promise<KvRouter> {
    return this.#models.add(options);
  }

  /** Closes a model's router, with its classifier and policies; false if it is none of this frontend's own. */
  removeModel(model: string, options: { graceMs?: number } = {}): Promise<boolean> {
    return this.#models.remove(model, options);
  }

  /** Answers one request; never rejects. Bound, so that it can be handed to a server as it is. */
  readonly fetch = async (request: Request): Promise<Response> => {
    this.#app ??= this.#build();
    return (await this.#app).fetch(request);
  };

  /**
   * Refuses new requests with 503, and closes the routers that the frontend built: what is in flight there may end
   * within `graceMs` (0 unless given). Closing those that were handed in is their owner's. A second call waits for the
   * first. Rejects with `invalid_request` for a bad `graceMs`.
   */
  async close(options: { graceMs?: number } = {}): Promise<void> {
    const graceMs = readGraceMs(options);
    this.#closed ??= this.#models.close({ graceMs });
    return this.#closed;
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
    for (const path of Object.keys(promptReaders)) {
      route("POST", path, (request, id) => this.#complete(request, id, path));
    }
    route("GET", "/v1/models", (request) => listModels(this.#sources(request)));
    // Names of models may have slashes, and clients send these as they are.
    route("GET", `${modelPath}:id{.+}`, (request) => oneModel(modelIdOf(request), this.#sources(request)));
    route("GET", "/health", () => Response.json({ status: "ok" }));
    app.notFound((c) =>
      this.#guard(c.req.raw, () => {
        throw new HttpError("not_found", "there is no such path; see /v1/models");
      }),
    );
    return app;
  }

  /** Tells the host; what it makes of it changes nothing. */
  #told(error: unknown, requestId: string): void {
    try {
      disown(this.#options.onError?.(error, requestId));
    } catch {
      // A log that fails has nobody to be told.
    }
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
        this.#told(error, requestId);
        response = errorResponse(error);
      }
    }
    response.headers.set("x-request-id", requestId);
    return response;
  }

  async #complete(request: Request, requestId: string, api: string): Promise<Response> {
    if (this.#closed) throw new WarmrouteError("shutting_down", "the router is closing");
    await this.#models.start();
    const { bytes, json } = await readJsonBody(request, this.#maxBodyBytes);
    const router = this.#models.of(json.model);
    const { tokens, exact, unitsPerToken } = readPrompt(json, api, this.#tokenizer);
    const { onDecision } = this.#options;
    const { signal } = request;
    const headers = new Headers(request.headers);
    headers.set("x-request-id", requestId);
    const selection = await router.select(
      { requestId, tokens, tokensExact: exact, unitsPerToken, ...hintsOf(headers), explain: onDecision !== undefined },
      { signal, headers, body: json },
    );
    try {
      disown(onDecision?.(selection));
    } catch (error) {
      selection.booking.abort(error);
      throw error;
    }
    const { pathname, search } = new URL(request.url);
    const answer = await selection.track(
      this.#dispatcher.send(targetOf(selection), {
        path: pathname + search,
        method: "POST",
        headers,
        body: bytes,
        signal,
      }),
      { signal, onBroken: (error) => this.#options.onError?.(error, requestId) },
    );
    return decorated(answer, selection);
  }

  #sources({ signal }: Request): ModelSources {
    const workers = this.#models.fallback?.workers();
    const { named } = this.#models;
    return { named, ...(workers === undefined ? {} : { workers }), dispatcher: this.#dispatcher, signal };
  }
}

/** What the package's entries compose routers with. */
export const openAiEdge: RouterEdge = {
  readPrompt,
  handler: (router, { tokenizer, fetch }) =>
    new HttpFrontend({ routers: [router], ...(tokenizer ? { tokenizer } : {}), ...(fetch ? { fetch } : {}) }).fetch,
};

/** A frontend whose routers are built at `start()` or the first request. */
export function createFrontend(options: FrontendOptions): HttpFrontend {
  return new HttpFrontend(options);
}

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

/** The worker's answer, with the decision in its headers. */
function decorated(answer: Response, selection: Selection): Response {
  const headers = responseHeaders(answer.headers);
  headers.set("x-warmroute-worker", selection.worker.workerId);
  headers.set("x-warmroute-dp-rank", String(selection.worker.dpRank));
  headers.set("x-warmroute-overlap-blocks", String(selection.overlap.deviceBlocks));
  headers.set("x-warmroute-evidence", selection.evidence);
  return new Response(answer.body, { status: answer.status, statusText: answer.statusText, headers });
}
