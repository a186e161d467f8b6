/**
 * How long an engine's pass takes: polynomials fitted to a real engine (spec: scheduling.md §8.4).
 * Times are whole microseconds, so that sums and differences of a replay are exact.
 */

/** Milliseconds to prefill `tokens` new tokens in one pass. */
export function prefillMs(tokens: number): number {
  return tokens === 0 ? 0 : (4.209989e-7 * tokens + 1.518344e-2) * tokens + 16.50142;
}

/** Milliseconds of one decode step of the whole batch; `usage` is active KV tokens ÷ all KV tokens of the rank. */
export function decodeMs(usage: number): number {
  return Math.max(1, (-25.74 * usage + 54.01) * usage + 5.74);
}

/** Microseconds of a pass that prefills `prefillTokens` and, with `decodes` > 0, decodes a token for each of those. */
export function passMicros(prefillTokens: number, decodes: number, usage: number): number {
  const ms = prefillMs(prefillTokens) + (decodes > 0 ? decodeMs(usage) : 0);
  return Math.round(ms * 1000);
}
