// The release module as the bench drives it: raw exports, one instance a pool, no host in between.
import { readFileSync } from "node:fs";
import { kernelPath } from "./locate.js";
import { pairSum } from "./workload/checksum.js";
import { eachStore, LONGEST_CHAIN, type Query, writeLocals, writeNames } from "./workload/sessions.js";

/** The exports that the bench calls (assembly/index.ts). Addresses are u32 and may arrive negative. */
export interface Exports {
  memory: WebAssembly.Memory;
  init(from: number, budget: bigint, blockSize: number, maxRanks: number, ownNames: number, seed: bigint): number;
  take(bytes: number): number;
  arenaInUse(): bigint;
  rankAdd(slot: number, workerId: bigint, dpRank: number): number;
  hashBlocks: Hash;
  localBlocks: Hash;
  /** Replaces the local hashes by sequence hashes. */
  indexStore(
    slot: number,
    tier: number,
    hasParent: number,
    parent: bigint,
    count: number,
    names: number,
    locals: number,
  ): number;
  indexRemove(slot: number, tier: number, names: number, count: number): number;
  indexFind(sequences: number, count: number): number;
  /** Pairs of slot and depth that the last indexFind() left. */
  indexOut: WebAssembly.Global<"i32">;
  indexOutCount: WebAssembly.Global<"i32">;
  column(which: number): number;
  scoreRows(
    params: number,
    promptTokens: number,
    blockSize: number,
    requestBlocks: number,
    sequenceBlocks: number,
    flags: number,
  ): void;
  pickRow(temperature: number): number;
  randomSeed(seed: bigint): void;
  namesArea(blocks: number): number;
  reserve(slot: number, blocks: number, privateBlocks: number, prefillTokens: number): number;
  bookingGeneration(id: number): number;
  bookingFree(id: number, generation: number): number;
  counter(which: number): number;
}

type Hash = (
  tokens: number,
  count: number,
  blockSize: number,
  window: number,
  seed: bigint,
  locals: number,
  sequences: number,
) => number;

let compiled: WebAssembly.Module | undefined;
const kernelModule = (): WebAssembly.Module => {
  compiled ??= new WebAssembly.Module(readFileSync(kernelPath()));
  return compiled;
};

export interface PoolOptions {
  ranks: number;
  /** Memory it may use; 2 GiB unless given. */
  budgetMiB?: number;
  /** Names are sequence hashes. */
  ownNames?: boolean;
}

/** A pool with its ranks, and room for a chain of names and one of local hashes. */
export class Pool {
  readonly exports: Exports;
  readonly ranks: number;
  private readonly names: number;
  private readonly locals: number;
  private words: Uint32Array;

  constructor(options: PoolOptions) {
    this.exports = new WebAssembly.Instance(kernelModule()).exports as unknown as Exports;
    this.ranks = options.ranks;
    const { exports, ranks } = this;
    const budget = BigInt(options.budgetMiB ?? 2048) << 20n;
    const status = exports.init(0, budget, 16, ranks, options.ownNames ? 1 : 0, 1n);
    if (status < 0) throw new Error(`the kernel did not start: status ${status}`);
    for (let slot = 0; slot < ranks; slot++) exports.rankAdd(slot, BigInt(slot + 1), 0);
    this.names = this.take(8 * LONGEST_CHAIN);
    this.locals = this.take(8 * LONGEST_CHAIN);
    this.words = new Uint32Array(exports.memory.buffer);
  }

  take(bytes: number): number {
    const address = this.exports.take(bytes) >>> 0;
    if (address === 0) throw new Error(`no room for ${bytes} bytes in the pool`);
    return address;
  }

  /** A region that holds `words` now. */
  put(words: Uint32Array): number {
    const address = this.take(words.byteLength);
    this.write(address, words);
    return address;
  }

  write(address: number, words: Uint32Array): void {
    if (this.words.buffer !== this.exports.memory.buffer) this.words = new Uint32Array(this.exports.memory.buffer);
    this.words.set(words, address >>> 2);
  }

  read(address: number, words: number): Uint32Array {
    return new Uint32Array(this.exports.memory.buffer, address, words);
  }

  /** Linear memory in use, in bytes: slack and free lists included. */
  bytes(): number {
    return Number(this.exports.arenaInUse());
  }

  /** Stores the first `count` blocks of a chain from the root. Hashes and names have two words a block. */
  store(rank: number, count: number, names: Uint32Array, locals: Uint32Array): void {
    this.write(this.names, names.subarray(0, 2 * count));
    this.write(this.locals, locals.subarray(0, 2 * count));
    const status = this.exports.indexStore(rank, 0, 0, 0n, count, this.names, this.locals);
    if (status < 0) throw new Error(`a store of ${count} blocks was refused: status ${status}`);
  }

  /** Stores block `at` of a chain under the name of the block before it. */
  append(rank: number, at: number, names: Uint32Array, locals: Uint32Array): void {
    this.write(this.names, names.subarray(2 * at, 2 * at + 2));
    this.write(this.locals, locals.subarray(2 * at, 2 * at + 2));
    const parent = (BigInt(names[2 * at - 1]!) << 32n) | BigInt(names[2 * at - 2]!);
    const status = this.exports.indexStore(rank, 0, 1, parent, 1, this.names, this.locals);
    if (status < 0) throw new Error(`an append was refused: status ${status}`);
  }

  /** Removes blocks by name; answers how many the rank held. */
  remove(rank: number, names: Uint32Array): number {
    this.write(this.names, names);
    return this.exports.indexRemove(rank, 0, this.names, names.length >>> 1);
  }

  /** Fills the pool with the workload's first sessions. */
  fill(sessions: number): void {
    const locals = new Uint32Array(2 * LONGEST_CHAIN);
    const names = new Uint32Array(2 * LONGEST_CHAIN);
    eachStore(sessions, this.ranks, (session, rank, tail) => {
      const count = writeLocals(locals, session, tail);
      writeNames(names, session, tail, rank);
      this.store(rank, count, names, locals);
    });
  }

  /** Sum of the last lookup's (rank, depth) pairs. */
  pairSum(query: number): number {
    const { exports } = this;
    const count = exports.indexOutCount.value;
    const pairs = this.read(exports.indexOut.value >>> 0, 2 * count);
    let sum = 0;
    for (let i = 0; i < count; i++) {
      if (pairs[2 * i + 1] !== 0) sum += pairSum(query, pairs[2 * i]!, pairs[2 * i + 1]!);
    }
    return sum >>> 0;
  }
}

/** Queries laid out in a pool's memory. */
export interface Laid {
  addresses: Int32Array;
  counts: Int32Array;
}

export function lay(pool: Pool, queries: readonly Query[]): Laid {
  const words = queries.reduce((sum, query) => sum + 2 * query.count, 0);
  let at = pool.take(4 * words);
  const laid = { addresses: new Int32Array(queries.length), counts: new Int32Array(queries.length) };
  for (const [i, query] of queries.entries()) {
    pool.write(at, query.sequences);
    laid.addresses[i] = at;
    laid.counts[i] = query.count;
    at += 8 * query.count;
  }
  return laid;
}
