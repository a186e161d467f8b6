export { loadCatalog } from "./catalog.js";
export { type FetchHandler, type NodeHandler, toNodeHandler } from "./handler.js";
export { loadPolicy } from "./policy.js";
export { type RunningServer, type ServerOptions, startServer } from "./server.js";
