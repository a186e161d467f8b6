import { TRACE_BLOCK, type Trace } from "./trace.js";

/**
 * The prompts of a trace as engine blocks and as tokens, worked out once for all modes.
 *
 * The tokens of a prompt are each hash id repeated 512 times, cut to its length. Equal leading ids thus give equal
 * leading tokens, and a full engine block is known by two numbers: the chain of hash ids up to its last token, and
 * its place in it. Every distinct chain gets a run of consecutive block ids, so nothing is hashed here, and engine and
 * trace block sizes may differ.
 */
export class Prompts {
  /** For each request, the ids of its full blocks: equal id = equal content from the start of the prompt on. */
  readonly blocks: Uint32Array[] = [];
  /** Number of distinct full blocks; ids are smaller. */
  readonly distinctBlocks: number;
  readonly inputTokens: number;
  /** Input tokens that one endless cache before which all requests pass in turn would save: no router can save more. */
  readonly reusableTokens: number;

  constructor(
    private readonly trace: Trace,
    readonly blockSize: number,
  ) {
    const chains = new Chains(trace.hashIds, blockSize);
    let inputTokens = 0;
    for (const request of trace.requests) {
      this.blocks.push(chains.blocks(request.hashIds, Math.floor(request.inputTokens / blockSize)));
      inputTokens += request.inputTokens;
    }
    this.inputTokens = inputTokens;
    this.distinctBlocks = chains.count;
    this.reusableTokens = this.countReusable();
  }

  /** The token ids of a prompt. */
  tokens(request: number): Uint32Array {
    const { hashIds, inputTokens } = this.trace.requests[request]!;
    const tokens = new Uint32Array(inputTokens);
    hashIds.forEach((id, i) => {
      tokens.fill(id, i * TRACE_BLOCK, (i + 1) * TRACE_BLOCK);
    });
    return tokens;
  }

  /** The length of a request's answer. */
  outputTokens(request: number): number {
    return this.trace.requests[request]!.outputTokens;
  }

  private countReusable(): number {
    const seen = new Uint8Array(this.distinctBlocks);
    let tokens = 0;
    this.blocks.forEach((blocks, request) => {
      let known = 0;
      while (known < blocks.length && seen[blocks[known]!] === 1) known++;
      for (let i = known; i < blocks.length; i++) seen[blocks[i]!] = 1;
      const usable = Math.floor((this.trace.requests[request]!.inputTokens - 1) / this.blockSize);
      tokens += Math.min(known, usable) * this.blockSize;
    });
    return tokens;
  }
}

/** Numbers the chains of hash ids, and the engine blocks that end in each. */
class Chains {
  count = 0;
  private readonly numbers = new Map<number, number>();
  private readonly firstBlock: number[] = [];

  constructor(
    private readonly hashIds: number,
    private readonly blockSize: number,
  ) {}

  /** The block ids of the first `full` engine blocks of a prompt. */
  blocks(hashIds: Uint32Array, full: number): Uint32Array {
    const blocks = new Uint32Array(full);
    let chain = 0;
    for (let i = 0, block = 0; block < full; i++) {
      const from = this.blocksBefore(i);
      const to = this.blocksBefore(i + 1);
      chain = this.extend(chain, hashIds[i]!, to - from);
      const first = this.firstBlock[chain - 1]!;
      for (; block < to && block < full; block++) blocks[block] = first + block - from;
    }
    return blocks;
  }

  /** Engine blocks that end within the first `n` trace blocks. */
  private blocksBefore(n: number): number {
    return Math.floor((n * TRACE_BLOCK) / this.blockSize);
  }

  /** The number (from 1; 0 is the empty chain) of `chain` followed by `id`. */
  private extend(chain: number, id: number, blocks: number): number {
    const key = chain * this.hashIds + id;
    const known = this.numbers.get(key);
    if (known !== undefined) return known;
    this.firstBlock.push(this.count);
    this.count += blocks;
    this.numbers.set(key, this.firstBlock.length);
    return this.firstBlock.length;
  }
}
