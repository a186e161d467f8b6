import { Random } from "./random.js";
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
  /** Any distinct numbers; renumbered by first appearance when written. */
  hashIds: number[];
}

// Milliseconds between the starts of sessions, on average, and the pace at which a reader waits for an answer.
const SESSION_GAP = 700;
const TOKEN_TIME = 15;

/**
 * Makes a trace of chat sessions in the Mooncake format, line by line: sessions share system prompts, and each turn
 * repeats the turn before with its answer and adds the user's next message. Only whole numbers and exact operations
 * decide, so equal options give equal bytes everywhere.
 */
export function* generateTrace(options: GeneratorOptions): Generator<string> {
  const turns = makeTurns(options).sort((a, b) => a.timestamp - b.timestamp);
  const numbers = new Map<number, number>();
  for (const turn of turns) {
    const hashIds = turn.hashIds.map((id) => {
      const known = numbers.get(id) ?? numbers.size;
      numbers.set(id, known);
      return known;
    });
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

function makeTurns({ seed, requests, sessions, systemPrompts }: GeneratorOptions): Turn[] {
  const random = new Random(seed);
  let nextId = 0;
  const newIds = (n: number): number[] => Array.from({ length: n }, () => nextId++);

  const prompts = Array.from({ length: systemPrompts }, () => newIds(random.between(1, 6)));
  const pickPrompt = popularity(systemPrompts);
  const turnsOf = new Array<number>(sessions).fill(1);
  for (let i = sessions; i < requests; i++) turnsOf[random.below(sessions)]!++;

  const turns: Turn[] = [];
  let start = 0;
  turnsOf.forEach((count, session) => {
    const context = [...prompts[pickPrompt(random.double())]!];
    let length = context.length * TRACE_BLOCK;
    let timestamp = start;
    for (let turn = 0; turn < count; turn++) {
      const delay = turn === 0 ? undefined : random.between(2_000, 30_000);
      timestamp += delay ?? 0;
      // One message in eight brings a document along.
      length += random.below(8) === 0 ? random.between(1_000, 8_000) : random.between(20, 400);
      context.push(...newIds(Math.floor(length / TRACE_BLOCK) - context.length));
      const tail = length % TRACE_BLOCK === 0 ? [] : newIds(1);
      const outputLength = random.between(30, 500);
      turns.push({
        sessionId: `s${session}`,
        timestamp,
        ...(delay !== undefined && { delay }),
        inputLength: length,
        outputLength,
        hashIds: [...context, ...tail],
      });
      length += outputLength;
      timestamp += outputLength * TOKEN_TIME;
    }
    start += random.between(0, 2 * SESSION_GAP);
  });
  return turns;
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
