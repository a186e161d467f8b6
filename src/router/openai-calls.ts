import { WarmrouteError } from "../core/errors.js";
import { Dispatcher, dispatchOf, eventsOf, parseAnswer } from "../dispatch/index.js";
import type { RouteOptions, Router, RouterOptions, Selection } from "./contract.js";
import type { RouterEdge } from "./edge.js";
import { hintsOf } from "./hints.js";
import { checkRouteOptions, readHeaders } from "./read-request.js";
import { type RouterSelection, targetOf } from "./selection.js";

type Body = Record<string, unknown>;

/** What a router does for requests in OpenAI's shape: it reads the prompt, selects, and sends if it is asked to. */
export class OpenAiCalls {
  readonly #router: Router;
  readonly #options: RouterOptions;
  readonly #edge: RouterEdge | undefined;
  readonly #dispatcher: Dispatcher;
  #handler: ((request: Request) => Promise<Response>) | undefined;

  constructor(router: Router, options: RouterOptions, edge: RouterEdge | undefined) {
    this.#router = router;
    this.#options = options;
    this.#edge = edge;
    this.#dispatcher = new Dispatcher(options.fetch ? { fetch: options.fetch } : {});
  }

  get #composed(): RouterEdge {
    if (this.#edge) return this.#edge;
    throw new WarmrouteError("invalid_config", "this router was built without its HTTP side: use createRouter()");
  }

  /** See `Router.fetch`. */
  fetch(request: Request): Promise<Response> {
    this.#handler ??= this.#composed.handler(this.#router, this.#options);
    return this.#handler(request);
  }

  /** See `Router.route`. */
  async route(body: Body, options: RouteOptions): Promise<Selection> {
    checkRouteOptions(options);
    const { auth, signal } = options;
    const { path, tokens, exact, unitsPerToken } = this.#composed.readPrompt(
      body,
      options.path,
      this.#options.tokenizer,
    );
    const bytes = writeBody(body);
    const headers = readHeaders(options.headers);
    const requestId = headers.get("x-request-id") || crypto.randomUUID();
    headers.set("x-request-id", requestId);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    const selection = (await this.#router.select(
      { requestId, tokens, tokensExact: exact, unitsPerToken, ...hintsOf(headers) },
      { headers, body, auth, ...(signal ? { signal } : {}) },
    )) as RouterSelection;
    return selection.dispatchedBy((target) =>
      dispatchOf(target, { path, method: "POST", headers, body: bytes, ...(signal ? { signal } : {}) }),
    );
  }

  /** See `Router.generate`. */
  async *generate(body: Body, options: RouteOptions): AsyncGenerator<unknown, void> {
    const selection = await this.route(body, options);
    const { url, init } = selection.dispatch!;
    const { signal } = options;
    const answer = await selection.track(
      this.#dispatcher.fetch(targetOf(selection), url, init),
      signal ? { signal } : {},
    );
    if (!answer.ok) {
      await answer.body?.cancel();
      const { worker } = selection;
      throw new WarmrouteError("upstream_failed", `worker ${worker.workerId} answered with status ${answer.status}`, {
        details: { ...worker, status: answer.status },
      });
    }
    if (/^text\/event-stream\b/.test(answer.headers.get("content-type") ?? "")) yield* eventsOf(answer.body!);
    else yield parseAnswer(await answer.text());
  }
}

/** The body as it travels: what it says beside its prompt is the worker's to judge. Throws `invalid_request`. */
function writeBody(body: Body): Uint8Array<ArrayBuffer> {
  try {
    return new TextEncoder().encode(JSON.stringify(body));
  } catch {
    // The reason could quote a key.
    throw new WarmrouteError("invalid_request", "the body cannot be written as JSON", {
      path: "body",
    });
  }
}
