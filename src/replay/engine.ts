import { BlockPool } from "./block-pool.js";
import { passMicros } from "./timing.js";

export interface EngineOptions {
  /** KV blocks of the rank. */
  blocks: number;
  /** Tokens a block. */
  blockSize: number;
  /** Token budget of one pass. */
  maxNumBatchedTokens: number;
  /** Requests that may run at once. */
  maxNumSeqs: number;
}

/** What vLLM serves with, and the blocks of the reference's worker model (spec: scheduling.md §8.4). */
export const vllmDefaults: Readonly<EngineOptions> = {
  blocks: 16_384,
  blockSize: 64,
  maxNumBatchedTokens: 8192,
  maxNumSeqs: 256,
};

/** What an engine is asked to do. `blocks` are the full blocks of the prompt; the ids are global and stand for content. */
export interface EngineRequest {
  request: number;
  blocks: Uint32Array;
  inputTokens: number;
  outputTokens: number;
}

/** What an engine tells: `admitted` when a pass is planned, the rest when a pass ends, removals before stores. */
export interface EngineListener {
  admitted(request: number, reusedTokens: number): void;
  blocksRemoved(blocks: readonly number[]): void;
  /** New blocks in prompt order; `parent` is the block before the first one, −1 at the start of a prompt. */
  blocksStored(parent: number, blocks: readonly number[]): void;
  token(request: number): void;
  finished(request: number): void;
}

interface Sequence extends EngineRequest {
  generated: number;
  /** Tokens whose keys and values are in the pool. */
  computed: number;
  /** Tokens of the current pass. */
  scheduled: number;
  /** Leading prompt blocks held. */
  held: number;
  /** Blocks that only this request can use: the partial one, and generated tokens. */
  own: number;
}

/**
 * One rank of a vLLM-like engine: continuous batching with chunked prefill under one token budget per pass,
 * running requests first and then waiting ones in order of arrival, prefix caching of full prompt blocks, and
 * preemption of the request admitted last, whose tokens are recomputed later (spec: scheduling.md §8.4).
 *
 * A block can be shared from the moment the pass that computes it is planned; the listener hears of it when that
 * pass ends. At least one token of a prompt is always computed, as its logits give the first output token.
 */
export class Engine {
  readonly pool: BlockPool;
  /** The current or last pass: prompt tokens computed, and requests that decode one token. */
  readonly pass = { prefillTokens: 0, decodes: 0 };
  private readonly waiting: Sequence[] = [];
  private readonly running: Sequence[] = [];
  private readonly batch: Sequence[] = [];
  private stored: { parent: number; blocks: number[] }[] = [];

  constructor(
    private readonly options: EngineOptions,
    private readonly listener: EngineListener,
  ) {
    this.pool = new BlockPool(options.blocks);
  }

  /** Nothing runs and nothing waits. */
  get idle(): boolean {
    return this.running.length === 0 && this.waiting.length === 0;
  }

  /** Queues a request; false when it could never fit this rank, which then ignores it. */
  submit(request: EngineRequest): boolean {
    if (blocksNeeded(request, this.options.blockSize) > this.options.blocks) return false;
    this.waiting.push({ ...request, generated: 0, computed: 0, scheduled: 0, held: 0, own: 0 });
    return true;
  }

  /** Plans a pass and answers how many microseconds it takes. The engine must not be idle. */
  startPass(): number {
    this.pass.prefillTokens = this.pass.decodes = 0;
    const waitingBefore = this.waiting.length;
    let budget = this.continueRunning(this.options.maxNumBatchedTokens);
    const preempted = this.waiting.length > waitingBefore;
    if (!preempted) budget = this.admitWaiting(budget);
    return passMicros(this.pass.prefillTokens, this.pass.decodes, this.pool.used / this.pool.capacity);
  }

  endPass(): void {
    const removed = this.pool.takeEvicted();
    if (removed.length > 0) this.listener.blocksRemoved(removed);
    for (const { parent, blocks } of this.stored) this.listener.blocksStored(parent, blocks);
    this.stored = [];

    let anyFinished = false;
    for (const sequence of this.batch) {
      sequence.computed += sequence.scheduled;
      if (sequence.computed < known(sequence)) continue;
      sequence.generated++;
      this.listener.token(sequence.request);
      if (sequence.generated < sequence.outputTokens) continue;
      this.releaseBlocks(sequence);
      anyFinished = true;
      this.listener.finished(sequence.request);
    }
    this.batch.length = 0;
    if (anyFinished) keep(this.running, (sequence) => sequence.generated < sequence.outputTokens);
  }

  private continueRunning(tokens: number): number {
    let budget = tokens;
    for (let i = 0; i < this.running.length && budget > 0; i++) {
      const sequence = this.running[i]!;
      const count = Math.min(known(sequence) - sequence.computed, budget);
      while (i < this.running.length && !this.reserve(sequence, sequence.computed + count)) this.preemptLast();
      if (i === this.running.length) break;
      this.schedule(sequence, count);
      budget -= count;
    }
    return budget;
  }

  private admitWaiting(tokens: number): number {
    let budget = tokens;
    while (this.waiting.length > 0 && budget > 0 && this.running.length < this.options.maxNumSeqs) {
      const sequence = this.waiting[0]!;
      const reusable = Math.floor((known(sequence) - 1) / this.options.blockSize);
      const hits = this.pool.resident(sequence.blocks, Math.min(reusable, sequence.blocks.length));
      const reused = hits * this.options.blockSize;
      const count = Math.min(known(sequence) - reused, budget);
      if (!this.reserve(sequence, reused + count)) break;
      this.waiting.shift();
      this.running.push(sequence);
      sequence.computed = reused;
      this.listener.admitted(sequence.request, reused);
      this.schedule(sequence, count);
      budget -= count;
    }
    return budget;
  }

  private schedule(sequence: Sequence, count: number): void {
    if (sequence.generated > 0 && known(sequence) - sequence.computed === 1) this.pass.decodes++;
    else this.pass.prefillTokens += count;
    sequence.scheduled = count;
    this.batch.push(sequence);
  }

  /** Makes the sequence hold the blocks of its first `tokens` tokens; false, and nothing changed, when they do not fit. */
  private reserve(sequence: Sequence, tokens: number): boolean {
    const { blocks, held } = sequence;
    const full = Math.min(Math.floor(tokens / this.options.blockSize), blocks.length);
    const more = Math.ceil(tokens / this.options.blockSize) - full - sequence.own;
    if (full === held && more === 0) return true;
    if (!this.pool.fits(blocks, held, full, more)) return false;

    // Own blocks that become prompt blocks give their room first; new own blocks come last, so that their
    // evictions cannot take a resident block of this prompt.
    if (more < 0) this.pool.takeOwn(more);
    const computed: number[] = [];
    for (let i = held; i < full; i++) if (this.pool.hold(blocks[i]!)) computed.push(blocks[i]!);
    if (more > 0) this.pool.takeOwn(more);

    if (computed.length > 0) {
      const first = full - computed.length;
      this.stored.push({ parent: first === 0 ? -1 : blocks[first - 1]!, blocks: computed });
    }
    sequence.held = full;
    sequence.own += more;
    return true;
  }

  /** The request admitted last gives all its blocks back and waits again, ahead of the others. */
  private preemptLast(): void {
    const sequence = this.running.pop()!;
    this.releaseBlocks(sequence);
    sequence.computed = 0;
    this.waiting.unshift(sequence);
  }

  private releaseBlocks(sequence: Sequence): void {
    this.pool.takeOwn(-sequence.own);
    this.pool.release(sequence.blocks, sequence.held);
    sequence.own = sequence.held = 0;
  }
}

/** Blocks that a request fills at its end: the last token of an answer is never computed on. */
export function blocksNeeded(request: { inputTokens: number; outputTokens: number }, blockSize: number): number {
  return Math.ceil((request.inputTokens + request.outputTokens - 1) / blockSize);
}

/** Tokens that exist so far: the prompt and what was generated. */
function known(sequence: Sequence): number {
  return sequence.inputTokens + sequence.generated;
}

function keep<T>(list: T[], wanted: (item: T) => boolean): void {
  let n = 0;
  for (const item of list) if (wanted(item)) list[n++] = item;
  list.length = n;
}
