// The public names of the `warmroute` entry points; how the kernel's module is found is theirs.
import { openAiEdge } from "./frontend/index.js";
import type { RouterOptions } from "./router/contract.js";
import { createRouter as construct } from "./router/create-router.js";
import type { KvRouter } from "./router/kv-router.js";

export type { Clock } from "./core/clock.js";
export type { ConfigOverride, KvRouterConfig } from "./core/config.js";
export { type ErrorCode, WarmrouteError } from "./core/errors.js";
export type { U64Input } from "./core/ids.js";
export type { Logger } from "./core/log.js";
export type { ChatMessage, Prompt, Tokenizer } from "./core/prompt.js";
export type * from "./core/types.js";
export { createFrontend, type FrontendOptions, HttpFrontend, type ModelOptions } from "./frontend/index.js";
export { type HashOptions, hashTokens, type PromptHashes } from "./kernel/hash.js";
export { init, type KernelSource } from "./kernel/module.js";
export * from "./plugins.js";
export type * from "./router/contract.js";
export { type EntryPoint, entryPoints, routerCalls } from "./router/entry-points.js";
export { KvRouter } from "./router/kv-router.js";

/**
 * A router for one model. Rejects with `invalid_config`, `invalid_worker`, `invalid_block_size` or `kernel_missing`;
 * of its plugins with `provider`, `invalid_plugin`, `index_required`, `classifier_not_installed` or
 * `no_catalog_installed`.
 */
export function createRouter(options: RouterOptions = {}): Promise<KvRouter> {
  return construct(options, { entryPoint: "createRouter", edge: openAiEdge });
}
