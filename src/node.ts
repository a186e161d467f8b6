// The `warmroute/node` entry: the universal part, and what serves it on Node.
export * from "./index.js";
export {
  type FetchHandler,
  loadCatalog,
  loadPolicy,
  type RunningServer,
  type ServerOptions,
  startServer,
  toNodeHandler,
} from "./runtime/node/index.js";
