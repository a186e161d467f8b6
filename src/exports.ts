// The public names of the `warmroute` entry points; how the kernel's module is found is theirs.
export type { Clock } from "./core/clock.js";
export type { ConfigOverride, KvRouterConfig } from "./core/config.js";
export { type ErrorCode, WarmrouteError } from "./core/errors.js";
export type { U64Input } from "./core/ids.js";
export type * from "./core/types.js";
export { createFrontend, type FrontendOptions, HttpFrontend } from "./frontend/index.js";
export { type HashOptions, hashTokens, type PromptHashes } from "./kernel/hash.js";
export { init, type KernelSource } from "./kernel/module.js";
export type * from "./router/contract.js";
export { createRouter } from "./router/create-router.js";
export { KvRouter } from "./router/kv-router.js";
