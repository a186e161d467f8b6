import { WarmrouteError } from "../core/errors.js";
import { hashTokens } from "../kernel/hash.js";
import type { Booking, RouterOptions } from "../router/contract.js";
import { createRouter } from "../router/create-router.js";
import type { KvRouter } from "../router/kv-router.js";
import type { Placement, ReplayRouter } from "./modes.js";
import type { Prompts } from "./prompts.js";

/**
 * The product's own router under replay: real tokens, real selection and booking, and the events that engines
 * would send. Blocks are named by their sequence hashes; the worker with index i has the id i.
 */
export async function createKvMode(
  prompts: Prompts,
  workers: number,
  engine: { blocks: number; maxNumBatchedTokens: number },
  options: Pick<RouterOptions, "seed" | "clock" | "plugins">,
): Promise<ReplayRouter> {
  const router = await createRouter(
    {
      ...options,
      blockSize: prompts.blockSize,
      blockNames: "sequence",
      maxRanks: workers,
      memoryBudgetBytes: 2 ** 32,
      workers: Array.from({ length: workers }, (_, workerId) => ({
        workerId,
        totalKvBlocks: engine.blocks,
        maxNumBatchedTokens: engine.maxNumBatchedTokens,
      })),
    },
    { entryPoint: "warmroute replay" },
  );
  return new KvMode(router, prompts);
}

class KvMode implements ReplayRouter {
  private readonly sequenceHashes: BigUint64Array;
  private readonly localHashes: BigUint64Array;
  private readonly bookings = new Map<number, Booking>();
  /** A policy that reads no caches has no index: no events reach it, and there is no overlap to tell of. */
  private readonly usesIndex: boolean;

  constructor(
    private readonly router: KvRouter,
    private readonly prompts: Prompts,
  ) {
    this.usesIndex = hasIndex(router);
    this.sequenceHashes = new BigUint64Array(prompts.distinctBlocks);
    this.localHashes = new BigUint64Array(prompts.distinctBlocks);
  }

  async route(request: number): Promise<Placement> {
    const tokens = this.prompts.tokens(request);
    let best = 0;
    if (this.usesIndex) {
      this.learnNames(this.prompts.blocks[request]!, tokens);
      best = Math.max(0, ...this.router.overlap({ tokens }).map((row) => row.deviceBlocks));
    }
    const { booking, worker, overlap } = await this.router.select({
      tokens,
      expectedOutputTokens: this.prompts.outputTokens(request),
    });
    this.bookings.set(request, booking);
    return {
      worker: Number(worker.workerId),
      ...(this.usesIndex && { overlap: { selectedBlocks: overlap.deviceBlocks, bestBlocks: best } }),
    };
  }

  prefillCompleted(request: number): void {
    this.bookings.get(request)!.prefillComplete();
  }

  finished(request: number): void {
    this.bookings.get(request)!.free();
    this.bookings.delete(request);
  }

  blocksRemoved(worker: number, blocks: readonly number[]): void {
    if (!this.usesIndex) return;
    this.router.removeBlocks(rank(worker), "device", pick(this.sequenceHashes, blocks));
  }

  blocksStored(worker: number, parent: number, blocks: readonly number[]): void {
    if (!this.usesIndex) return;
    const { applied, reason } = this.router.storeBlocks(
      rank(worker),
      "device",
      parent < 0 ? null : this.sequenceHashes[parent]!,
      pick(this.sequenceHashes, blocks),
      pick(this.localHashes, blocks),
    );
    // A router that misses events would be measured as something it is not.
    if (!applied) throw new WarmrouteError("invalid_event", `the router refused a stored event: ${reason}`);
  }

  close(): Promise<void> {
    return this.router.close();
  }

  /** Hashes a prompt if its blocks were not seen before. */
  private learnNames(blocks: Uint32Array, tokens: Uint32Array): void {
    const last = blocks[blocks.length - 1];
    if (last === undefined || this.sequenceHashes[last] !== 0n) return;
    const { blockHashes, sequenceHashes } = hashTokens(tokens, this.prompts.blockSize);
    blocks.forEach((block, i) => {
      this.localHashes[block] = blockHashes[i]!;
      this.sequenceHashes[block] = sequenceHashes[i]!;
    });
  }
}

function hasIndex(router: KvRouter): boolean {
  try {
    router.overlap({ blockHashes: [0n] });
    return true;
  } catch (error) {
    if (error instanceof WarmrouteError && error.code === "index_required") return false;
    throw error;
  }
}

const rank = (worker: number): { workerId: string; dpRank: number } => ({ workerId: String(worker), dpRank: 0 });

function pick(hashes: BigUint64Array, blocks: readonly number[]): BigUint64Array {
  return BigUint64Array.from(blocks, (block) => hashes[block]!);
}
