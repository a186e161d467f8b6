// The workload of the index rows: 16 system prompts of 128 blocks, and sessions that continue one of them by 64 to 943
// blocks on one to three ranks, which hold all, 60 % and 30 % of the continuation. A query is a session's whole chain
// and 32 blocks that no rank holds. bench/native/sessions.h makes the same.
import { chain } from "./chain.js";
import { mix32, Stream, writeHashes } from "./mix.js";

export const SYSTEM_PROMPTS = 16;
export const SYSTEM_BLOCKS = 128;
export const UNKNOWN_BLOCKS = 32;
export const LONGEST_CHAIN = SYSTEM_BLOCKS + 943 + UNKNOWN_BLOCKS;

/** Blocks of the session beyond its system prompt. */
export const tailBlocks = (session: number): number => 64 + (mix32(session ^ 0x51ed270b) % 880);

/** On how many ranks the session ran. */
export const rankCount = (session: number): number => 1 + (mix32(session ^ 0x2545f491) % 3);

/** The session's `k`-th rank of `ranks`. */
export const rankOf = (session: number, k: number, ranks: number): number => mix32((session << 2) | k) % ranks;

const SHARES = [10, 6, 3];

/** Blocks of the session's tail that its `k`-th rank holds. */
export const heldTail = (session: number, k: number): number => Math.floor((tailBlocks(session) * SHARES[k]!) / 10);

/**
 * Local hashes of a session: system prompt, `tail` blocks, `unknown` blocks, which differ for each `other`. Answers
 * how many were written.
 */
export function writeLocals(out: Uint32Array, session: number, tail: number, unknown = 0, other = session): number {
  writeHashes(out, 0, SYSTEM_BLOCKS, Stream.SYSTEM, session % SYSTEM_PROMPTS);
  writeHashes(out, SYSTEM_BLOCKS, tail, Stream.TAIL, session);
  writeHashes(out, SYSTEM_BLOCKS + tail, unknown, Stream.UNKNOWN, other);
  return SYSTEM_BLOCKS + tail + unknown;
}

/** The rank's own names of the session's first blocks. */
export function writeNames(out: Uint32Array, session: number, tail: number, rank: number): void {
  writeHashes(out, 0, SYSTEM_BLOCKS, Stream.SYSTEM_NAME, session % SYSTEM_PROMPTS, rank);
  writeHashes(out, SYSTEM_BLOCKS, tail, Stream.TAIL_NAME, session, rank);
}

/** How many sessions bring a pool to `blocks` distinct blocks. */
export function sessionsFor(blocks: number): number {
  let distinct = SYSTEM_PROMPTS * SYSTEM_BLOCKS;
  let session = 0;
  while (distinct < blocks) distinct += tailBlocks(session++);
  return session;
}

/** A query: the session's chain as local and as sequence hashes, two words a hash. */
export interface Query {
  session: number;
  count: number;
  locals: Uint32Array;
  sequences: Uint32Array;
}

export function queryOf(session: number, other = session): Query {
  const locals = new Uint32Array(2 * LONGEST_CHAIN);
  const count = writeLocals(locals, session, tailBlocks(session), UNKNOWN_BLOCKS, other);
  const sequences = new Uint32Array(2 * count);
  chain(locals, count, sequences);
  return { session, count, locals: locals.slice(0, 2 * count), sequences };
}

export const REPEATED_QUERIES = 512;

/** The repeated queries of a pool of `sessions` sessions. */
export const queriesOf = (sessions: number): Query[] =>
  Array.from({ length: REPEATED_QUERIES }, (_, i) => queryOf((i * 7919) % sessions));

/** Calls `each` for every store that fills a pool: session, rank, tail blocks. */
export function eachStore(
  sessions: number,
  ranks: number,
  each: (session: number, rank: number, tail: number) => void,
): void {
  for (let session = 0; session < sessions; session++) {
    for (let k = 0; k < rankCount(session); k++) each(session, rankOf(session, k, ranks), heldTail(session, k));
  }
}
