import type { IncomingMessage, ServerResponse } from "node:http";
import { getRequestListener } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { checkMethods } from "../../core/fields.js";

/** Anything with a universal handler: a frontend, a mock worker. */
export interface FetchHandler {
  fetch(request: Request): Response | Promise<Response>;
}

export type NodeHandler = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>;

/**
 * A `node:http` request listener for a universal handler. The request's signal fires when the client leaves. Throws
 * `invalid_config` for what has no `fetch`.
 */
export function toNodeHandler(handler: FetchHandler): NodeHandler {
  checkMethods(handler ?? null, ["fetch"], "handler", "invalid_config");
  return getRequestListener(
    async (request, { outgoing }) => {
      await write(await handler.fetch(request), outgoing as ServerResponse);
      return RESPONSE_ALREADY_SENT;
    },
    { overrideGlobalObjects: false },
  );
}

/**
 * Writes the response as the client takes it: one chunk at a time, a body that breaks cuts the connection, a client
 * that leaves cancels the body.
 */
async function write(response: Response, outgoing: ServerResponse): Promise<void> {
  const reader = response.body?.getReader();
  if (outgoing.destroyed) {
    await reader?.cancel().catch(() => {});
    return;
  }
  outgoing.writeHead(response.status, headersOf(response.headers));
  if (!reader) {
    outgoing.end();
    return;
  }
  outgoing.flushHeaders();
  outgoing.once("close", () => void reader.cancel().catch(() => {}));
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      if (!outgoing.write(next.value) && !outgoing.destroyed) await drained(outgoing);
    }
    outgoing.end();
  } catch {
    // The status is out already: a cut is the only way to say that the answer is not whole.
    outgoing.destroy();
  }
}

function drained(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      outgoing.off("drain", done);
      outgoing.off("close", done);
      resolve();
    };
    outgoing.on("drain", done);
    outgoing.on("close", done);
  });
}

/** `Headers` joins repeated fields except cookies, which stay a list. */
function headersOf(headers: Headers): Record<string, string | string[]> {
  const cookies = headers.getSetCookie();
  return { ...Object.fromEntries(headers), ...(cookies.length > 0 ? { "set-cookie": cookies } : {}) };
}
