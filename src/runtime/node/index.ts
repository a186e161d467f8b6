export { type FetchHandler, type NodeHandler, toNodeHandler } from "./handler.js";
export { type RunningServer, type ServerOptions, startServer } from "./server.js";
