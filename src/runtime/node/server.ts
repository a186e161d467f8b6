import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { longestTimerMs } from "../../core/clock.js";
import { WarmrouteError } from "../../core/errors.js";
import { checkFields, fieldsOf, readGraceMs } from "../../core/fields.js";
import { describe } from "../../core/ids.js";
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
  /**
   * Stops accepting, lets running requests finish for `graceMs` (0 unless given), then cuts them. Answers how many it
   * cut.
   */
  close(options?: { graceMs?: number }): Promise<number>;
}

const fields = fieldsOf<ServerOptions>({ fetch: "call", port: "any", host: "any" });

/** How often a server that closes looks for connections that have become idle. */
const idleCheckMs = 50;

/**
 * Serves a universal handler over HTTP. Rejects with `invalid_config` naming the option, `port_in_use` when the port
 * is taken, and `cannot_listen` where this machine does not let it.
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const host = checked(options);
  const server = createServer(toNodeHandler(options));
  const running = new Set<ServerResponse>();
  server.on("request", (_, outgoing) => {
    running.add(outgoing);
    outgoing.once("close", () => running.delete(outgoing));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(listenError(error, options.port, host)));
    server.listen(options.port, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    host,
    url: `http://${reachable(host)}:${port}`,
    close: async (closeOptions) => {
      const graceMs = readGraceMs(closeOptions);
      let cut = 0;
      await new Promise<void>((resolve) => {
        const end = setTimeout(
          () => {
            cut = running.size;
            server.closeAllConnections();
          },
          Math.min(graceMs, longestTimerMs),
        );
        // A connection whose answer has ended would wait for the client's next request.
        const idle = setInterval(() => server.closeIdleConnections(), idleCheckMs);
        server.close(() => {
          clearTimeout(end);
          clearInterval(idle);
          resolve();
        });
        server.closeIdleConnections();
      });
      return cut;
    },
  };
}

/** The host of options that are right. */
function checked(options: ServerOptions): string {
  checkFields(options, fields, "options", "invalid_config");
  const { fetch, port, host = "127.0.0.1" } = options;
  if (fetch === undefined) throw invalid("fetch", "is missing: give the handler of requests");
  if (!(Number.isInteger(port) && port >= 0 && port <= 65_535)) {
    throw invalid("port", `must be a whole number from 0 to 65535, not ${describe(port)}`);
  }
  // Node would take an empty one for all addresses.
  if (typeof host !== "string" || host.trim() === "") {
    throw invalid("host", `must be an address or a name, not ${describe(host)}`);
  }
  return host;
}

const invalid = (path: string, fault: string) => new WarmrouteError("invalid_config", `${path} ${fault}`, { path });

/** The address to write in a URL: a server on all addresses is reached at loopback, IPv6 wears brackets. */
function reachable(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "127.0.0.1";
  return host.includes(":") ? `[${host}]` : host;
}

function listenError(error: NodeJS.ErrnoException, port: number, host: string): WarmrouteError {
  const info = { cause: error, details: { port, host } };
  return error.code === "EADDRINUSE"
    ? new WarmrouteError("port_in_use", `port ${port} on ${host} is taken`, info)
    : new WarmrouteError("cannot_listen", `cannot listen on ${host}, port ${port}: ${error.code}`, info);
}
