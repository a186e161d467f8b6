import { WarmrouteError } from "../core/errors.js";
import type { Candidate } from "../core/types.js";
import { counted } from "../replay/index.js";
import type { Selection } from "../router/contract.js";

/** What the demonstration found out about one request. */
export interface DemoRow {
  request: string;
  worker: string;
  reused_blocks: number;
  prompt_blocks: number;
  /** Cached prompt tokens as the worker reports them. */
  cached_tokens: number;
  evidence: string;
  first_token_ms: number;
  reason: string;
  why: string;
}

interface DemoOptions {
  url: string;
  model: string;
  blockSize: number;
  /** The frontend's decisions by request id. */
  decisions: ReadonlyMap<string, Selection>;
}

interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

const system: Message = {
  role: "system",
  content: [
    "You are the support assistant of Lanternfish Outfitters, a shop for people who camp by the sea.",
    "Be brief, be kind, and never promise what the shop cannot keep.",
    ...[
      [
        "Tents",
        "may come back within 60 days, dry and in their bag; poles that broke in use are replaced free of charge",
      ],
      ["Stoves", "may come back within 30 days if never lit; ask for the batch number, because batch 7 was recalled"],
      ["Boots", "may come back within 90 days, worn or not; half sizes are made to order and take three weeks"],
      ["Sleeping bags", "may come back within 30 days in their seal; repairs of zips cost nothing for ten years"],
      ["Kayaks", "are collected from the customer's door; the customer chooses the morning or the afternoon"],
      ["Lamps", "carry a warranty of five years; a cracked glass is no defect unless it cracked in the parcel"],
      ["Maps", "cannot come back, but a misprint is replaced by the next edition and a handwritten apology"],
      ["Gift cards", "never expire, can be split between orders, and are never paid out in money"],
      ["Ropes", "cannot come back once the paper band is cut, because nobody can tell what they have held"],
      ["Orders", "placed before noon leave the same day, except in the week before midsummer, when all is slow"],
      ["Parcels", "that the sea has reached are replaced at once; ask for one picture, and not for a second one"],
      ["Refunds", "go back the way the money came, within five days; never offer a voucher in their place"],
      ["Repairs", "are done in the shop on Tuesdays; a loan of the same thing is free until the repair is done"],
      ["Prices", "that fell within two weeks of an order are refunded by the difference, also without being asked"],
      ["Addresses", "may be changed until the parcel is handed over, and never after that, not even by the manager"],
      ["Students", "and sea rescuers pay a tenth less; believe them, and do not ask for papers"],
      ["Used things", "are bought back at a third of their price if they are clean, whole and younger than six years"],
      ["Weather", "is not our fault, but we may say that we are sorry about it; knots and tides are on page nine"],
    ].map(([what, rule], i) => `Rule ${i + 1}. ${what} ${rule}.`),
    "If a customer is angry, first say what you understood, then what you can do today, then who will call them.",
    "If you do not know, say so, and give the number of the shop: it is open from eight to eight, Sundays as well.",
  ].join("\n"),
};

// Long enough that reading it keeps a worker busy for a while.
const letter = Array.from(
  { length: 60 },
  (_, i) =>
    `Day ${i + 1}: the tent let in ${(i * 7) % 23} drops an hour, the wind came from the ${i % 2 ? "west" : "north"}, and I wrote it all down.`,
).join("\n");

/** A conversation that grows turn by turn, as clients resend it. */
class Conversation {
  readonly messages: Message[] = [system];
  ask(content: string): Message[] {
    this.messages.push({ role: "user", content });
    return [...this.messages];
  }
  answered(content: string): void {
    this.messages.push({ role: "assistant", content });
  }
}

/** Sends related prompts over HTTP, one after the other except for Ben's second turn, and yields what became of each. */
export async function* demonstrate(options: DemoOptions): AsyncGenerator<DemoRow, void> {
  // Shorter than a block, so they leave nothing behind; code and connections are warm afterwards.
  for (let i = 0; i < 8; i++) await send(options, "warm-up", [{ role: "user", content: "Hello" }], 1);
  const before = options.decisions.size;
  const ada = new Conversation();
  const ben = new Conversation();
  const turn = async (request: string, who: Conversation, text: string) => {
    const { row, reply } = await send(options, request, who.ask(text));
    who.answered(reply);
    return row;
  };
  yield await turn("Ada, first turn", ada, "My tent arrived with a bent pole. What can you do for me?");
  yield await turn("Ben, first turn", ben, "Which boots do you have for wet rock, and can I send them back?");
  yield await turn("Ada, second turn", ada, "Thank you. Do I have to send the old pole back?");
  const recipe = "Write a recipe for bread that bakes in a pan over a small fire. ".repeat(20);
  yield (await send(options, "Cleo, unrelated", [{ role: "user", content: recipe }])).row;
  // Ben comes back while the worker that knows him is reading Ada's long letter.
  const reading = turn("Ada, a long letter", ada, `Here is my diary of that tent. Please read it.\n${letter}`);
  await Promise.race([routed(options.decisions, before + 5), reading]);
  const meanwhile = turn("Ben, at the same time", ben, "I take the ones with the red laces. Are they made to order?");
  yield await reading;
  yield await meanwhile;
  yield await turn("Ben, third turn", ben, "Then I wait the three weeks. Thank you.");
}

async function routed(decisions: ReadonlyMap<string, Selection>, count: number): Promise<void> {
  while (decisions.size < count) await new Promise((resolve) => setTimeout(resolve, 1));
}

async function send(
  { url, model, blockSize, decisions }: DemoOptions,
  request: string,
  messages: Message[],
  maxTokens?: number,
): Promise<{ row: DemoRow; reply: string }> {
  const started = performance.now();
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model,
      messages,
      max_tokens: maxTokens,
      stream: true,
      stream_options: { include_usage: true },
    }),
  });
  if (!response.ok) {
    const { error } = (await response.json()) as { error: { code: string } };
    throw new WarmrouteError(
      "upstream_failed",
      `the demonstration's request was refused: ${response.status} ${error.code}`,
      { details: { help: "Try the demonstration without --policy, or with one that lets it through." } },
    );
  }
  const { reply, cachedTokens, firstTokenAt } = await readStream(response);
  const header = (name: string) => response.headers.get(name) ?? "";
  const selection = decisions.get(header("x-request-id"))!;
  const row: DemoRow = {
    request,
    worker: header("x-warmroute-worker"),
    reused_blocks: Number(header("x-warmroute-overlap-blocks")),
    prompt_blocks: Math.floor((selection.cachedTokens + selection.effectivePrefillTokens) / blockSize),
    cached_tokens: cachedTokens,
    evidence: header("x-warmroute-evidence"),
    first_token_ms: Math.round(firstTokenAt - started),
    reason: selection.reason,
    why: why(selection),
  };
  return { row, reply };
}

/** Reads server-sent events to their end. */
async function readStream(response: Response) {
  let reply = "";
  let cachedTokens = 0;
  let firstTokenAt = Number.NaN;
  let rest = "";
  // Node's streams can be iterated; the DOM's types do not know.
  const texts = response.body!.pipeThrough(new TextDecoderStream()) as unknown as AsyncIterable<string>;
  for await (const text of texts) {
    if (Number.isNaN(firstTokenAt)) firstTokenAt = performance.now();
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      if (!line.startsWith("data: {")) continue;
      const chunk = JSON.parse(line.slice(6));
      reply += chunk.choices[0]?.delta.content ?? "";
      cachedTokens = chunk.usage?.prompt_tokens_details.cached_tokens ?? cachedTokens;
    }
  }
  return { reply, cachedTokens, firstTokenAt };
}

/** A decision in plain words, from its candidates' costs (in blocks of work). */
export function why({ reason, worker, overlap, candidates = [] }: Selection): string {
  const cost = (candidate: Candidate) => candidate.cost ?? 0;
  const chosen = candidates.find((one) => one.workerId === worker.workerId && one.dpRank === worker.dpRank);
  const others = candidates.filter((one) => one !== chosen).sort((a, b) => cost(a) - cost(b));
  const next = others[0];
  if (!chosen || !next) return "it is the only worker";
  const equals = candidates.filter((one) => cost(one) === cost(chosen)).length;
  const here = equals > 1 ? `here, as on ${equals - 1} more` : "here";
  const warmest = others.reduce((a, b) => (holds(b) > holds(a) ? b : a));
  if (reason === "no_signal") return `no worker holds any of it and none is busy: drawn at random among ${equals}`;
  if (holds(warmest) > overlap.deviceBlocks) {
    const there = `worker ${warmest.workerId} holds ${holds(warmest)} but is busy, cost ${blocks(cost(warmest))}`;
    return `${there}; ${blocks(cost(chosen))} ${here}`;
  }
  if (equals > 1) return `cost ${blocks(cost(chosen))} ${here}: drawn at random among them`;
  const because = overlap.deviceBlocks > 0 ? "it holds the start already" : "it has the least to do";
  return `${because}: cost ${blocks(cost(chosen))}, against ${blocks(cost(next))} on the next best, worker ${next.workerId}`;
}

const holds = (candidate: Candidate) => Number(candidate.terms.device_credit ?? 0);
const blocks = (n: number) => n.toFixed(1);

const colours = process.stdout.isTTY === true && process.env.NO_COLOR === undefined;
const paint = (code: string) => (text: string) => (colours ? `\x1b[${code}m${text}\x1b[0m` : text);
const bold = paint("1");
const dim = paint("2");
const green = paint("32");

const barWidth = 14;

export const renderHeader = () =>
  dim("     request                worker   blocks reused                first token   evidence\n");

export function renderRow(number: number, row: DemoRow): string {
  const { reused_blocks, prompt_blocks } = row;
  const filled = Math.round((barWidth * reused_blocks) / Math.max(1, prompt_blocks));
  const cells = [
    bold(row.request.padEnd(22)),
    row.worker.padEnd(8),
    green("█".repeat(filled)) + dim("░".repeat(barWidth - filled)),
    `${String(reused_blocks).padStart(3)} of ${String(prompt_blocks).padStart(3)}`,
    `${String(row.first_token_ms).padStart(7)} ms  `,
    row.evidence,
  ];
  return `  ${number}  ${cells.join(" ")}\n     ${dim(row.why)}\n`;
}

/** Sets what the router counted against what the workers report. */
export function renderSummary(rows: readonly DemoRow[], blockSize: number): string {
  const sum = (value: (row: DemoRow) => number) => rows.reduce((total, row) => total + value(row), 0);
  const reused = sum((row) => row.reused_blocks);
  const total = sum((row) => row.prompt_blocks);
  const expected = sum((row) => Math.floor((row.reused_blocks * blockSize) / 4));
  const reported = sum((row) => row.cached_tokens);
  const check =
    reported === expected
      ? "the workers report the same"
      : `the workers report ${reported} cached tokens instead of ${expected}`;
  const share = `${reused} of ${counted(total, "block")} (${Math.round((100 * reused) / total)} %) were not computed again`;
  return [
    `  ${total === 0 ? `no prompt fills a block of ${counted(blockSize, "byte")}: nothing can be reused` : share}; ${check}.`,
    dim("  Workers and their times are simulated; decisions, caches and HTTP are real. Evidence is approximate"),
    dim("  because bytes stand in for the engine's tokens. A cost counts blocks to compute and blocks in use."),
  ].join("\n");
}

/** What to try next; without a url the server is gone already. */
export function renderHints(url: string | undefined, model: string, blockSize: number): string {
  const content = "Tell me in one sentence why a prompt that was read before need not be read again.";
  const body = JSON.stringify({ model, messages: [{ role: "user", content }] });
  const blocks = Math.floor(`user.${content}.`.length / blockSize);
  const tryIt = [
    "",
    `  ${bold("Ask it yourself")}, twice: the second answer says x-warmroute-overlap-blocks: ${blocks}`,
    `    curl -si ${url}/v1/chat/completions -H 'content-type: application/json' \\`,
    `      -d '${body}'`,
  ];
  return [
    ...(url === undefined ? [] : tryIt),
    "",
    `  ${bold("Compare with round robin")} on a sample trace`,
    "    npx warmroute replay examples/sample-trace.jsonl --workers 4 --mode kv,round_robin --out out",
    "",
  ].join("\n");
}
