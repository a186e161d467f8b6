// Headers that belong to one connection (RFC 9110 §7.6.1), not to the message that travels on.
const hopByHop = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

// What the sending side sets anew, and the rank, which only the router decides.
const ownOfRequest = ["host", "content-length", "accept-encoding", "expect", "x-data-parallel-rank"];

function without(headers: Headers, names: readonly string[]): Headers {
  const kept = new Headers(headers);
  for (const name of (headers.get("connection") ?? "").split(",")) {
    // A client may write anything there; what is no header name cannot be a header either.
    if (/^[\w-]+$/.test(name.trim())) kept.delete(name.trim());
  }
  for (const name of hopByHop) kept.delete(name);
  for (const name of names) kept.delete(name);
  return kept;
}

/** The client's headers as a worker gets them. */
export function requestHeaders(headers: Headers): Headers {
  const kept = without(headers, ownOfRequest);
  // `fetch` would decompress the answer: ask for the bytes as the client shall see them.
  kept.set("accept-encoding", "identity");
  return kept;
}

/** The worker's headers as the client gets them. */
export function responseHeaders(headers: Headers): Headers {
  // `fetch` has undone an encoding that the worker applied unasked; then the stated length is wrong, too.
  const decoded = headers.has("content-encoding");
  return without(headers, decoded ? ["content-encoding", "content-length"] : []);
}
