import { WarmrouteError } from "../core/errors.js";
import { describe } from "../core/ids.js";
import { parseJson } from "../core/json.js";

/** Tokens that one hash id of a trace stands for. */
export const TRACE_BLOCK = 512;

/** One line of a trace. */
export interface TraceRequest {
  /** 1-based, blank lines counted. */
  line: number;
  sessionId: string;
  /** 0-based place in its session. */
  turn: number;
  /** Of a first turn: milliseconds after the earliest first turn of the trace. */
  arrivalMs: number;
  /** Of a later turn: milliseconds from the end of the previous turn to the arrival of this one. */
  delayMs: number;
  inputTokens: number;
  outputTokens: number;
  /** One id per 512 tokens, numbered by first appearance in the trace. */
  hashIds: Uint32Array;
  /** Index of the session's next turn. */
  next?: number;
}

export interface Trace {
  requests: TraceRequest[];
  /** Number of distinct hash ids. */
  hashIds: number;
  /** Lines left out under `skipBad`, each with its reason. */
  skipped: { line: number; reason: string }[];
  /** Lines whose `input_length` is more than their hash ids stand for, and was cut to that. */
  cut: Lines;
  /** Lines with more hash ids than their `input_length` needs; the surplus is not used. */
  surplus: Lines;
}

/** How many lines have something, and the first of them. */
interface Lines {
  count: number;
  firstLine: number;
}

/**
 * Reads a trace in the Mooncake format (spec: scheduling.md §8.1): one JSON object a line, blank lines ignored.
 * Throws `invalid_trace` with the line and the field at the first bad line, or, with `skipBad`, leaves bad lines
 * out and reports them; a trace without a single request is an error in either case.
 */
export async function readTrace(
  lines: AsyncIterable<string> | Iterable<string>,
  options: { skipBad?: boolean } = {},
): Promise<Trace> {
  const builder = new TraceBuilder();
  const skipped: Trace["skipped"] = [];
  let line = 0;
  for await (const text of lines) {
    line++;
    // Trimming takes a byte order mark away, too.
    const trimmed = text.trim();
    if (trimmed === "") continue;
    try {
      builder.add(line, trimmed);
    } catch (error) {
      if (!options.skipBad || !(error instanceof WarmrouteError)) throw error;
      skipped.push({ line, reason: error.message });
    }
  }
  if (builder.requests.length === 0) {
    const why = skipped.length === 0 ? "it has no lines" : `all ${skipped.length} lines are bad: ${skipped[0]!.reason}`;
    throw new WarmrouteError("invalid_trace", `the trace is empty: ${why}`);
  }
  return { requests: builder.finish(), hashIds: builder.ids.size, skipped, cut: builder.cut, surplus: builder.surplus };
}

interface Session {
  last: number;
  /** Timestamp of the last turn that has one. */
  timestamp: number | undefined;
}

class TraceBuilder {
  readonly requests: TraceRequest[] = [];
  readonly ids = new Map<number | string, number>();
  readonly cut: Lines = { count: 0, firstLine: 0 };
  readonly surplus: Lines = { count: 0, firstLine: 0 };
  private readonly sessions = new Map<string, Session>();

  add(line: number, text: string): void {
    const raw = parseLine(line, text);
    const session = this.sessions.get(raw.sessionId);
    const previous = session && this.requests[session.last]!;
    if (!previous && raw.delay !== undefined) bad(line, "delay", "is given on the first turn of its session");
    const bothTimed = raw.timestamp !== undefined && session?.timestamp !== undefined;
    const sinceLast = bothTimed ? raw.timestamp! - session.timestamp! : 0;
    if (previous && raw.delay === undefined && sinceLast < 0) {
      bad(line, "timestamp", `${raw.timestamp} is earlier than the previous turn's, ${session!.timestamp}`);
    }

    const most = raw.hashIds.length * TRACE_BLOCK;
    const stated = raw.inputTokens ?? most;
    if (stated > most && this.cut.count++ === 0) this.cut.firstLine = line;
    if (stated <= most - TRACE_BLOCK && this.surplus.count++ === 0) this.surplus.firstLine = line;
    const index = this.requests.length;
    this.requests.push({
      line,
      sessionId: raw.sessionId,
      turn: previous ? previous.turn + 1 : 0,
      arrivalMs: previous ? 0 : (raw.timestamp ?? Number.NaN),
      delayMs: previous ? (raw.delay ?? sinceLast) : 0,
      inputTokens: Math.min(stated, most),
      outputTokens: raw.outputTokens,
      hashIds: this.number(raw.hashIds),
    });
    if (previous) previous.next = index;
    this.sessions.set(raw.sessionId, { last: index, timestamp: raw.timestamp ?? session?.timestamp });
  }

  /** Counts arrivals from the earliest one; a first turn without a timestamp arrives at that instant. */
  finish(): TraceRequest[] {
    let start = Number.POSITIVE_INFINITY;
    for (const { turn, arrivalMs } of this.requests) if (turn === 0 && arrivalMs < start) start = arrivalMs;
    for (const request of this.requests) {
      if (request.turn > 0) continue;
      request.arrivalMs = Number.isNaN(request.arrivalMs) ? 0 : request.arrivalMs - start;
    }
    return this.requests;
  }

  private number(hashIds: readonly (number | string)[]): Uint32Array {
    return Uint32Array.from(hashIds, (id) => {
      const known = this.ids.get(id) ?? this.ids.size;
      this.ids.set(id, known);
      return known;
    });
  }
}

interface RawLine {
  sessionId: string;
  timestamp: number | undefined;
  delay: number | undefined;
  inputTokens: number | undefined;
  outputTokens: number;
  hashIds: (number | string)[];
}

function parseLine(line: number, text: string): RawLine {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    throw new WarmrouteError("invalid_trace", `line ${line} is not JSON: ${describe(text)}`, {
      line,
      cause: error,
    });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new WarmrouteError("invalid_trace", `line ${line} is not an object but ${describe(value)}`, { line });
  }
  const raw = value as Record<string, unknown>;

  const hashIds = raw.hash_ids;
  if (!Array.isArray(hashIds)) bad(line, "hash_ids", `must be an array of integers, not ${describe(hashIds)}`);
  if (hashIds.length === 0) bad(line, "hash_ids", "is empty, so the request has no prompt");
  hashIds.forEach((id, i) => {
    if (!isHashId(id)) bad(line, `hash_ids[${i}]`, `must be an integer, not ${describe(id)}`);
  });
  const sessionId = raw.session_id ?? undefined;
  if (sessionId !== undefined && (typeof sessionId !== "string" || sessionId === "")) {
    bad(line, "session_id", `must be a non-empty string, not ${describe(sessionId)}`);
  }
  return {
    sessionId: sessionId ?? `request_${line}`,
    timestamp: optional(raw.timestamp, (v) => milliseconds(line, "timestamp", v)),
    delay: optional(raw.delay, (v) => milliseconds(line, "delay", v)),
    inputTokens: optional(raw.input_length, (v) => count(line, "input_length", v)),
    outputTokens: count(line, "output_length", raw.output_length),
    hashIds,
  };
}

/** `parseJson` leaves integers of 16 digits and more as strings. */
export function isLongInteger(value: unknown): boolean {
  return typeof value === "string" && /^-?\d{16,}$/.test(value);
}

/** A hash id is a JSON integer of any length. */
function isHashId(value: unknown): value is number | string {
  return typeof value === "number" ? Number.isSafeInteger(value) : isLongInteger(value);
}

/** JSON's null stands for an absent field. */
function optional<T>(value: unknown, read: (value: unknown) => T): T | undefined {
  return value === undefined || value === null ? undefined : read(value);
}

function count(line: number, field: string, value: unknown): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 1) return value;
  if (isLongInteger(value)) return bad(line, field, `is too large: ${value}`);
  return bad(
    line,
    field,
    value === undefined ? "is missing" : `must be an integer of at least 1, not ${describe(value)}`,
  );
}

function milliseconds(line: number, field: string, value: unknown): number {
  if (typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER) return value;
  if (isLongInteger(value)) return bad(line, field, `is too large for milliseconds: ${value}`);
  return bad(line, field, `must be a number of milliseconds from 0 to 2^53 − 1, not ${describe(value)}`);
}

function bad(line: number, field: string, reason: string): never {
  throw new WarmrouteError("invalid_trace", `line ${line}: ${field} ${reason}`, { line, path: field });
}
