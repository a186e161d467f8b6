import { WarmrouteError } from "../core/errors.js";
import { checkFields, checkMethods, fieldsOf } from "../core/fields.js";
import type { Tokenizer } from "../core/prompt.js";
import type { Fetch } from "../dispatch/index.js";
import type { RouterPlugins } from "../plugins/bundle.js";
import type { Router, RouterOptions, Selection } from "../router/contract.js";
import { checkOptions, checkPlugins } from "../router/read-request.js";

const shared = ["plugins", "policy", "tokenizer", "fetch"] as const;

/** The router of one model; what all models of a frontend share is the frontend's. */
export type ModelOptions = Omit<RouterOptions, (typeof shared)[number]>;

export interface FrontendOptions {
  /** The bundle that routers are built from; `HttpFrontend.plugins` can give it later. */
  plugins?: RouterPlugins;
  /** A router is built for each, all from the bundle. */
  models?: readonly ModelOptions[];
  /** Routers that exist, one for each model. They stay their owner's to close. */
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

const fields = fieldsOf<FrontendOptions>({
  plugins: "any",
  models: "list",
  routers: "list",
  fallback: "object",
  tokenizer: "object",
  fetch: "call",
  maxBodyBytes: "count",
  onDecision: "call",
  onError: "call",
});

/** Throws `invalid_config` naming the field. */
export function checkFrontendOptions(options: unknown): void {
  checkFields(options, fields, "options", "invalid_config");
  const { models = [], routers = [], fallback, plugins, tokenizer } = options as FrontendOptions;
  if (plugins !== undefined) checkPlugins(plugins);
  checkMethods(tokenizer, ["encode"], "tokenizer", "invalid_config");
  checkRouter(fallback, "fallback");
  const seen = new Set<string>();
  const once = (model: string, path: string) => {
    if (seen.has(model)) {
      const message = `${path} is the second router of the model ${model}`;
      throw new WarmrouteError("invalid_config", message, { path, details: { model } });
    }
    seen.add(model);
  };
  for (const [i, router] of routers.entries()) {
    checkRouter(router ?? null, `routers[${i}]`);
    once(router.model, `routers[${i}]`);
  }
  for (const [i, model] of models.entries()) {
    checkModel(model, `models[${i}]`, `models[${i}].`);
    once(model.model ?? "default", `models[${i}]`);
  }
}

/** Checks the options of one model, which are at `prefix`. Throws `invalid_config` naming the field. */
export function checkModel(options: unknown, what: string, prefix = ""): void {
  const name = shared.find((field) => Object.hasOwn(Object(options), field));
  if (name !== undefined) {
    const path = prefix + name;
    throw new WarmrouteError("invalid_config", `all models share ${name}: give it to the frontend`, { path });
  }
  checkOptions(options, what, prefix);
}

const checkRouter = (router: unknown, path: string) =>
  checkMethods(router, ["select", "serveAt", "workers"], path, "invalid_config");
