import { WarmrouteError } from "../core/errors.js";
import type { Tokenizer } from "../core/prompt.js";
import type { Fetch } from "../dispatch/index.js";
import { RouterPlugins } from "../plugins/bundle.js";
import { assertHonoured } from "../router/construct.js";
import type { Router, RouterOptions } from "../router/contract.js";
import { createRouter } from "../router/create-router.js";
import type { RouterEdge } from "../router/edge.js";
import type { KvRouter } from "../router/kv-router.js";
import { checkPlugins } from "../router/read-request.js";
import { checkModel, type ModelOptions } from "./options.js";

const entryPoint = "HttpFrontend";

/** Where a table's routers come from, and what they share. */
export interface ModelTableOptions {
  models?: readonly ModelOptions[];
  routers?: readonly Router[];
  fallback?: Router;
  tokenizer?: Tokenizer;
  fetch?: Fetch;
}

/** The routers of a frontend by model: those it was given, and those it builds from one bundle. */
export class ModelTable {
  plugins = new RouterPlugins();
  readonly fallback: Router | undefined;
  readonly #edge: RouterEdge;
  readonly #given: ReadonlyMap<string, Router>;
  readonly #own = new Map<string, KvRouter>();
  readonly #wanted: readonly ModelOptions[];
  readonly #shared: Pick<RouterOptions, "tokenizer" | "fetch">;
  #building = new Set<string>();
  #started: Promise<void> | undefined;
  #closed = false;

  constructor({ models, routers, fallback, tokenizer, fetch }: ModelTableOptions, edge: RouterEdge) {
    this.#edge = edge;
    this.#wanted = models ?? [];
    this.#shared = { ...(tokenizer && { tokenizer }), ...(fetch && { fetch }) };
    this.fallback = fallback;
    this.#given = new Map(routers?.map((router) => [router.model, router]));
    for (const router of this.#handedIn()) router.serveAt(entryPoint);
  }

  *#handedIn(): Generator<Router> {
    yield* this.#given.values();
    if (this.fallback) yield this.fallback;
  }

  get named(): string[] {
    return [...this.#given.keys(), ...this.#own.keys()];
  }

  /** Takes the bundle that routers are built from (see `HttpFrontend.plugins`). */
  use(plugins: RouterPlugins): void {
    checkPlugins(plugins);
    if (this.#started || this.#own.size > 0) {
      throw new WarmrouteError("already_started", "plugins() comes before the first router is built");
    }
    assertHonoured(entryPoint, plugins);
    for (const { model, plugins: own } of this.#handedIn()) {
      if (own === plugins) continue;
      const message = `the router of ${model} was built with other plugins: give it this bundle, or let the frontend build it`;
      throw new WarmrouteError("invalid_config", message, { path: "routers", details: { model } });
    }
    this.plugins = plugins;
  }

  /** Builds the routers of `models`, all or none; once. */
  start(): Promise<void> {
    this.#started ??= this.#start().catch((error) => {
      this.#started = undefined;
      throw error;
    });
    return this.#started;
  }

  async #start(): Promise<void> {
    const built: string[] = [];
    try {
      for (const options of this.#wanted) built.push((await this.add(options)).model);
    } catch (error) {
      for (const model of built) await this.remove(model, { graceMs: 0 });
      throw error;
    }
  }

  /** Builds the router of one more model. */
  async add(options: ModelOptions): Promise<KvRouter> {
    if (this.#closed) throw new WarmrouteError("shutting_down", "the frontend is closed");
    checkModel(options, "options");
    const model = options.model ?? "default";
    if (this.#given.has(model) || this.#own.has(model) || this.#building.has(model)) {
      throw new WarmrouteError("already_started", `the model ${model} is served already`, { details: { model } });
    }
    this.#building.add(model);
    try {
      const router = await createRouter(
        { ...options, ...this.#shared, plugins: this.plugins },
        { entryPoint, edge: this.#edge },
      );
      if (this.#closed) {
        await router.close();
        throw new WarmrouteError("shutting_down", "the frontend was closed while it built this router");
      }
      this.#own.set(model, router);
      return router;
    } finally {
      this.#building.delete(model);
    }
  }

  /** Closes the router of a model that this table built. */
  async remove(model: string, options: { graceMs?: number }): Promise<boolean> {
    const router = this.#own.get(model);
    if (!router) return false;
    this.#own.delete(model);
    await router.close(options);
    return true;
  }

  /** The router for a request's `model`. Throws `invalid_request` or `model_not_found`. */
  of(model: unknown): Router {
    if (model !== undefined && typeof model !== "string") {
      throw new WarmrouteError("invalid_request", "model must be a string", { path: "model" });
    }
    const router = this.#named(model) ?? this.fallback;
    if (router) return router;
    if (model === undefined) throw new WarmrouteError("invalid_request", "model is missing", { path: "model" });
    throw new WarmrouteError("model_not_found", "no such model here; see /v1/models", { path: "model" });
  }

  /** A frontend of one model serves the requests that name none. */
  #named(model: string | undefined): Router | undefined {
    if (model !== undefined) return this.#given.get(model) ?? this.#own.get(model);
    const [only, more] = [...this.#given.values(), ...this.#own.values()];
    return more === undefined ? only : undefined;
  }

  /** Closes every router that this table built, side by side; no more are built. */
  async close(options: { graceMs?: number }): Promise<void> {
    this.#closed = true;
    await this.#started?.catch(() => {});
    await Promise.all([...this.#own.keys()].map((model) => this.remove(model, options)));
  }
}
