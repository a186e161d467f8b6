import { Random } from "../core/random.js";
import { EventQueue } from "./event-queue.js";
import { TRACE_BLOCK } from "./trace.js";

export interface GeneratorOptions {
  seed: bigint;
  requests: number;
  /** At most as many as requests: each has at least one turn. */
  sessions: number;
  /** Different system prompts; the k-th is 1/k as popular as the first. */
  systemPrompts: number;
}

interface Turn {
  sessionId: string;
  timestamp: number;
  /** Absent on the first turn. */
  delay?: number;
  inputLength: number;
  outputLength: number;
  /** Hash ids of the conversation, which grow after this turn: only the first `full` are of it. */
  context: readonly number[];
  full: number;
  /** Hash id of the partial block at the end, if there is one. */
  tail?: number;
}

// Milliseconds between the starts of sessions, on average, and the pace at which a reader waits for an answer.
const SESSION_GAP = 700;
const TOKEN_TIME = 15;

/** Prompt tokens of a turn at most; a session that would exceed them begins anew from its system prompt. */
export const MOST_SESSION_TOKENS = 131_072;

/**
 * Makes a trace of chat sessions in the Mooncake format, line by line: sessions share system prompts, and each turn
 * repeats the turn before with its answer and adds the user's next message. Only whole numbers and exact operations
 * decide, so equal options give equal bytes everywhere.
 */
export function* generateTrace(options: GeneratorOptions): Generator<string> {
  const numbers = new Numbers();
  for (const turn of inOrder(sessionsOf(options))) {
    const hashIds: number[] = [];
    for (let i = 0; i < turn.full; i++) hashIds.push(numbers.of(turn.context[i]!));
    if (turn.tail !== undefined) hashIds.push(numbers.of(turn.tail));
    yield JSON.stringify({
      session_id: turn.sessionId,
      timestamp: turn.timestamp,
      delay: turn.delay,
      input_length: turn.inputLength,
      output_length: turn.outputLength,
      hash_ids: hashIds,
    });
  }
}

/** Merges the turns of sessions by time. Sessions come in order of their starts, so few have to wait at once. */
function* inOrder(sessions: Iterable<readonly Turn[]>): Generator<Turn> {
  const waiting = new EventQueue<Turn>();
  for (const turns of sessions) {
    const start = turns[0]!.timestamp;
    while (waiting.size > 0 && waiting.next! <= start) yield waiting.pop()!.event;
    for (const turn of turns) waiting.push(turn.timestamp, turn);
  }
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) yield next.event;
}

function* sessionsOf({ seed, requests, sessions, systemPrompts }: GeneratorOptions): Generator<readonly Turn[]> {
  const random = new Random(seed);
  let nextId = 0;
  const newIds = (n: number): number[] => Array.from({ length: n }, () => nextId++);

  const prompts = Array.from({ length: systemPrompts }, () => newIds(random.between(1, 6)));
  const pickPrompt = popularity(systemPrompts);
  const turnsOf = new Uint32Array(sessions).fill(1);
  for (let i = sessions; i < requests; i++) turnsOf[random.below(sessions)]!++;

  let start = 0;
  for (const [session, count] of turnsOf.entries()) {
    const prompt = prompts[pickPrompt(random.double())]!;
    const turns: Turn[] = [];
    let context = [...prompt];
    let length = context.length * TRACE_BLOCK;
    let timestamp = start;
    for (let turn = 0; turn < count; turn++) {
      const delay = turn === 0 ? undefined : random.between(2_000, 30_000);
      timestamp += delay ?? 0;
      // One message in eight brings a document along.
      const message = random.below(8) === 0 ? random.between(1_000, 8_000) : random.between(20, 400);
      if (length + message > MOST_SESSION_TOKENS) {
        context = [...prompt];
        length = context.length * TRACE_BLOCK;
      }
      length += message;
      context.push(...newIds(Math.floor(length / TRACE_BLOCK) - context.length));
      const tail = length % TRACE_BLOCK === 0 ? undefined : nextId++;
      const outputLength = random.between(30, 500);
      turns.push({
        sessionId: `s${session}`,
        timestamp,
        ...(delay !== undefined && { delay }),
        inputLength: length,
        outputLength,
        context,
        full: context.length,
        ...(tail !== undefined && { tail }),
      });
      length += outputLength;
      timestamp += outputLength * TOKEN_TIME;
    }
    yield turns;
    start += random.between(0, 2 * SESSION_GAP);
  }
}

/** Numbers ids by first appearance. Ids are dense, and may be more than a `Map` can hold. */
class Numbers {
  /** By id; 0 has not appeared, else its number + 1. */
  #known = new Uint32Array(1024);
  #count = 0;

  of(id: number): number {
    if (id >= this.#known.length) {
      const larger = new Uint32Array(Math.max(id + 1, this.#known.length * 2));
      larger.set(this.#known);
      this.#known = larger;
    }
    this.#known[id] ||= ++this.#count;
    return this.#known[id]! - 1;
  }
}

/** Maps a uniform number in [0, 1) to 0 … n − 1 with weights 1, 1/2, 1/3, … */
function popularity(n: number): (u: number) => number {
  const cumulative: number[] = [];
  let total = 0;
  for (let k = 1; k <= n; k++) {
    total += 1 / k;
    cumulative.push(total);
  }
  return (u) => cumulative.findIndex((sum) => u * total < sum);
}
