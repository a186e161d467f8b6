import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { WarmrouteError } from "../../core/errors.js";
import { type FetchHandler, toNodeHandler } from "./handler.js";

export interface ServerOptions extends FetchHandler {
  /** 0 takes any free port. */
  port: number;
  /** `127.0.0.1` unless given. */
  host?: string;
}

export interface RunningServer {
  port: number;
  host: string;
  /** Where a client on this machine finds it. */
  url: string;
  /** Stops accepting, lets running requests finish for `graceMs` (0 unless given), then cuts them. */
  close(options?: { graceMs?: number }): Promise<void>;
}

/** How often a server that closes looks for connections that have become idle. */
const idleCheckMs = 50;

/** Serves a universal handler over HTTP. Throws `port_in_use` when the port is taken. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const host = options.host ?? "127.0.0.1";
  // Node would take it for all addresses.
  if (host.trim() === "") throw new WarmrouteError("invalid_usage", "the host is empty", { path: "host" });
  const server = createServer(toNodeHandler(options));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(listenError(error, options.port, host)));
    server.listen(options.port, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    host,
    url: `http://${reachable(host)}:${port}`,
    close: ({ graceMs = 0 } = {}) =>
      new Promise((resolve) => {
        const end = setTimeout(() => server.closeAllConnections(), graceMs);
        // A connection whose answer has ended would wait for the client's next request.
        const idle = setInterval(() => server.closeIdleConnections(), idleCheckMs);
        server.close(() => {
          clearTimeout(end);
          clearInterval(idle);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}

/** The address to write in a URL: a server on all addresses is reached at loopback, IPv6 wears brackets. */
function reachable(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}

function listenError(error: NodeJS.ErrnoException, port: number, host: string): WarmrouteError {
  const info = { cause: error, details: { port, host } };
  return error.code === "EADDRINUSE"
    ? new WarmrouteError("port_in_use", `port ${port} on ${host} is taken`, info)
    : new WarmrouteError("invalid_usage", `cannot listen on ${host}, port ${port}: ${error.code}`, info);
}
