import { instantiateSync } from "@assemblyscript/loader";
import { WarmrouteError } from "../core/errors.js";
import type { KernelExports } from "./abi.js";
import { kernelModule } from "./module.js";

export interface KernelOptions {
  blockSize: number;
  maxRanks: number;
  /** Bytes of linear memory the pool may use beyond the module's static data. */
  budgetBytes: number;
  /** Names of blocks are their sequence hashes. */
  ownNames: boolean;
  seed: bigint;
  /** Where the arena starts; tests place it above 2 GiB. */
  from?: number;
}

/** Views for the names and local hashes of an event's blocks, valid until memory grows. */
export interface EventArea {
  names: BigUint64Array<ArrayBuffer>;
  locals: BigUint64Array<ArrayBuffer>;
}

const MAX_BLOCK_SIZE = 1 << 20;
const MAX_RANKS = 16384;
const utf8 = new TextEncoder();

/** Field offsets of the request row in u32 words (assembly/select/request.ts). */
const REQUEST = { tokens: 0, flags: 1, pinned: 2, policy: 3, seedLow: 4, seedHigh: 5, window: 6 } as const;
const REQUEST_WORDS = 48;
const ANSWER_WORDS = 32;

/**
 * One pool's kernel: an instance of the module, its memory, and typed views that survive growth.
 * A trap marks it failed: every later call throws `kernel_failed`, and no other pool is touched.
 */
export class Kernel {
  readonly exports: KernelExports;
  readonly blockSize: number;
  readonly maxRanks: number;
  /** The request row and the answer row, as words and as doubles. */
  request!: Uint32Array<ArrayBuffer>;
  requestDoubles!: Float64Array<ArrayBuffer>;
  answer!: Uint32Array<ArrayBuffer>;
  answerDoubles!: Float64Array<ArrayBuffer>;
  #memory: WebAssembly.Memory;
  #buffer: ArrayBuffer;
  #tokens!: Uint32Array<ArrayBuffer>;
  #drawUnit: () => number;
  #failure: WarmrouteError | undefined;
  /** Every verb is refused: the kernel has failed, or a policy's components run. */
  #refuses = false;
  /** What waits until no components run. */
  #later: (() => void)[] = [];
  #seeds = new Map<string, bigint>();

  constructor(options: KernelOptions) {
    const { blockSize, maxRanks, budgetBytes } = options;
    checkBlockSize(blockSize);
    if (!Number.isInteger(maxRanks) || maxRanks < 1 || maxRanks > MAX_RANKS) {
      throw new WarmrouteError("invalid_config", `maxRanks must be a whole number from 1 to ${MAX_RANKS}`, {
        path: "maxRanks",
      });
    }
    if (!Number.isInteger(budgetBytes) || budgetBytes < 1 || budgetBytes > 2 ** 32) {
      throw new WarmrouteError("invalid_config", "memoryBudgetBytes must be a whole number from 1 to 4294967296", {
        path: "memoryBudgetBytes",
      });
    }
    const raw = instantiateSync(kernelModule()).instance.exports as unknown as KernelExports;
    this.exports = this.#guarded(raw);
    this.#drawUnit = raw.randomUnit;
    this.blockSize = blockSize;
    this.maxRanks = maxRanks;
    this.#memory = raw.memory;
    this.#buffer = raw.memory.buffer as ArrayBuffer;
    const status = this.exports.init(
      options.from ?? 0,
      BigInt(budgetBytes),
      blockSize,
      maxRanks,
      options.ownNames ? 1 : 0,
      BigInt.asIntN(64, options.seed),
    );
    if (status !== 0) throw budgetError("a pool of this size");
    this.#refresh();
  }

  get failed(): boolean {
    return this.#failure !== undefined;
  }

  /** The next number in [0, 1) of the pool's generator; the one verb that a policy's components may call. */
  random(): number {
    if (this.#failure) throw this.#failure;
    return this.#drawUnit();
  }

  /** Refuses every verb until release(): the components of a policy run between two verbs of one decision. */
  hold(): void {
    this.#refuses = true;
  }

  release(): void {
    this.#refuses = this.failed;
  }

  /** Throws `policy_failed` while a policy's components run. For what changes state before its first verb. */
  assertFree(): void {
    if (this.isHeld) throw this.#refused();
  }

  /** Whether a policy's components run. */
  get isHeld(): boolean {
    return this.#refuses && !this.#failure;
  }

  /** Has `act` done at settle(). For what must not be refused while components run. */
  postpone(act: () => void): void {
    this.#later.push(act);
  }

  /** Does what was postponed: the decision that the components were asked about is over. */
  settle(): void {
    if (this.#later.length === 0) return;
    const acts = this.#later;
    this.#later = [];
    if (!this.#failure) for (const act of acts) act();
  }

  #refused(): WarmrouteError {
    if (this.#failure) return this.#failure;
    return new WarmrouteError("policy_failed", "a policy's component used the router that was calling it");
  }

  /** Wraps each export so that a trap becomes `kernel_failed` and is remembered. */
  #guarded(raw: KernelExports): KernelExports {
    const out: Record<string, unknown> = { memory: raw.memory };
    for (const [name, value] of Object.entries(raw)) {
      if (typeof value !== "function") continue;
      // Wasm functions ignore surplus arguments; a fixed arity avoids an array on every call.
      const f = value as (...args: unknown[]) => unknown;
      out[name] = (a: unknown, b: unknown, c: unknown, d: unknown, e: unknown, g: unknown) => {
        if (this.#refuses) throw this.#refused();
        try {
          return f(a, b, c, d, e, g);
        } catch (error) {
          if (!(error instanceof WebAssembly.RuntimeError)) throw error;
          this.#refuses = true;
          this.#failure = new WarmrouteError("kernel_failed", `the kernel trapped in ${name}: ${error.message}`, {
            cause: error,
            details: { verb: name },
          });
          throw this.#failure;
        }
      };
    }
    return out as unknown as KernelExports;
  }

  /** Re-creates the cached views when memory has grown: old ones are detached and drop writes silently. */
  sync(): void {
    if (this.#memory.buffer !== this.#buffer) this.#refresh();
  }

  #refresh(): void {
    const buffer = this.#memory.buffer as ArrayBuffer;
    this.#buffer = buffer;
    const request = this.exports.requestRow() >>> 0;
    const answer = this.exports.answerRow() >>> 0;
    this.request = new Uint32Array(buffer, request, REQUEST_WORDS);
    this.requestDoubles = new Float64Array(buffer, request, REQUEST_WORDS / 2);
    this.answer = new Uint32Array(buffer, answer, ANSWER_WORDS);
    this.answerDoubles = new Float64Array(buffer, answer, ANSWER_WORDS / 2);
    this.#tokens = new Uint32Array(0);
  }

  u32(pointer: number, length: number): Uint32Array<ArrayBuffer> {
    return new Uint32Array(this.#memory.buffer as ArrayBuffer, pointer >>> 0, length);
  }
  u64(pointer: number, length: number): BigUint64Array<ArrayBuffer> {
    return new BigUint64Array(this.#memory.buffer as ArrayBuffer, pointer >>> 0, length);
  }
  f64(pointer: number, length: number): Float64Array<ArrayBuffer> {
    return new Float64Array(this.#memory.buffer as ArrayBuffer, pointer >>> 0, length);
  }
  bytes(pointer: number, length: number): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#memory.buffer as ArrayBuffer, pointer >>> 0, length);
  }

  /** A column over all rank rows (see `Column`), valid until ranks are added or memory grows. */
  column(which: number): Float64Array<ArrayBuffer> {
    return this.f64(this.exports.column(which), this.exports.rankCount());
  }

  /**
   * Copies a prompt into linear memory. Plain arrays are checked element by element;
   * a Uint32Array cannot hold anything else than token ids.
   */
  writeTokens(tokens: Uint32Array | readonly number[]): number {
    checkTokens(tokens);
    const n = tokens.length;
    if (this.#refuses) throw this.#refused();
    this.sync();
    if (this.#tokens.length < n) this.#growTokens(n);
    if (tokens instanceof Uint32Array) this.#tokens.set(tokens);
    else {
      const view = this.#tokens;
      for (let i = 0; i < n; i++) {
        const t = tokens[i] as number;
        if (typeof t !== "number" || t >>> 0 !== t) {
          throw new WarmrouteError("invalid_tokens", `tokens[${i}] is not an integer from 0 to 4294967295`, {
            path: `tokens[${i}]`,
            details: { index: i },
          });
        }
        view[i] = t;
      }
    }
    return n;
  }

  #growTokens(n: number): void {
    const capacity = 2 ** Math.ceil(Math.log2(Math.max(n, 4096)));
    const pointer = this.exports.tokensArea(capacity);
    if (pointer === 0) throw budgetError(`a prompt of ${n} tokens`);
    this.sync();
    this.#tokens = this.u32(pointer, capacity);
  }

  /** Hashes the written prompt: local hashes into `localsArea`, sequence hashes into `sequencesArea`. */
  hashPrompt(tokens: number, blockSize: number, seed: bigint): number {
    const blocks = this.exports.hashPrompt(tokens, blockSize, blockSize, BigInt.asIntN(64, seed));
    if (blocks < 0) throw budgetError(`the hashes of ${tokens} tokens`);
    this.sync();
    return blocks;
  }

  /** Room for `n` block names and `n` local hashes of an event; undefined when the budget has none. */
  eventArea(n: number): EventArea | undefined {
    const names = this.exports.namesArea(n);
    if (names === 0) return undefined;
    this.sync();
    return { names: this.u64(names, n), locals: this.u64(this.exports.localsArea(), n) };
  }

  /** As eventArea(); throws `memory_budget`. */
  roomForEvent(n: number): EventArea {
    const area = this.eventArea(n);
    if (!area) throw budgetError(`${n} block names at once`);
    return area;
  }

  /** The seed of local hashes for an adapter and a cache salt (spec: indexer.md §1.2); both may be empty. */
  localSeed(lora: string | undefined, salt: string | undefined): bigint {
    if (!lora && !salt) return 1337n;
    const key = `${lora ?? ""}\u0000${salt ?? ""}`;
    let seed = this.#seeds.get(key);
    if (seed === undefined) {
      const a = utf8.encode(lora ?? "");
      const b = utf8.encode(salt ?? "");
      const pointer = this.exports.textArea(a.length + b.length);
      if (pointer === 0) throw budgetError("an adapter name or cache salt of this length");
      this.sync();
      this.bytes(pointer, a.length).set(a);
      this.bytes((pointer >>> 0) + a.length, b.length).set(b);
      seed = BigInt.asUintN(64, this.exports.localSeed(pointer, a.length, (pointer >>> 0) + a.length, b.length));
      if (this.#seeds.size >= 1024) this.#seeds.clear();
      this.#seeds.set(key, seed);
    }
    return seed;
  }

  /** Fills the request row for a prompt of `n` tokens. */
  setRequest(n: number, flags: number, pinnedSlot: number, policy: number, seed: bigint): void {
    const row = this.request;
    row[REQUEST.tokens] = n;
    row[REQUEST.flags] = flags;
    row[REQUEST.pinned] = pinnedSlot + 1;
    row[REQUEST.policy] = policy;
    if (seed === 1337n) {
      row[REQUEST.seedLow] = 1337;
      row[REQUEST.seedHigh] = 0;
    } else {
      row[REQUEST.seedLow] = Number(seed & 0xffffffffn);
      row[REQUEST.seedHigh] = Number(seed >> 32n);
    }
    row[REQUEST.window] = this.blockSize;
  }
}

/** Checks all of a prompt but its elements. Throws `invalid_tokens`. */
export function checkTokens(tokens: unknown): asserts tokens is Uint32Array | readonly number[] {
  if (!(tokens instanceof Uint32Array) && !Array.isArray(tokens)) {
    throw new WarmrouteError("invalid_tokens", "tokens must be a Uint32Array or an array of integers", {
      path: "tokens",
    });
  }
  if (tokens.length === 0) throw new WarmrouteError("invalid_tokens", "tokens is empty", { path: "tokens" });
}

export function checkBlockSize(blockSize: unknown): asserts blockSize is number {
  if (typeof blockSize !== "number" || !Number.isInteger(blockSize) || blockSize < 1 || blockSize > MAX_BLOCK_SIZE) {
    throw new WarmrouteError("invalid_block_size", `the block size is not a whole number from 1 to ${MAX_BLOCK_SIZE}`, {
      path: "blockSize",
    });
  }
}

export function budgetError(what: string): WarmrouteError {
  return new WarmrouteError("memory_budget", `the memory budget does not allow ${what}`);
}
