// A small fleet and a seeded stream of requests over it. Prompts are made of the blocks of one golden prompt, whose
// block hashes are known, so that the stream needs no hash function of its own to write engine events.
import type { WorkerInput } from "../../src/core/types.js";
import type { Booking, Router, Selection, SelectRequest } from "../../src/router/contract.js";

const BLOCK = 16;

/** Eight workers of two ranks, one of them with the largest id there is; a few carry taints. */
export const fleet: WorkerInput[] = Array.from({ length: 8 }, (_, i) => ({
  workerId: i === 7 ? "18446744073709551615" : String(i + 1),
  dpSize: 2,
  taints: i % 3 === 0 ? ["large"] : i % 3 === 1 ? ["spot"] : [],
}));

/** xorshift32: the stream's own numbers, the same on every runtime. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** A growing prompt: the golden blocks it is made of, in order, and a tail shorter than a block. */
export interface Prompt {
  blocks: number[];
  tail: number;
}

export interface Traffic {
  prompts: Prompt[];
  tokens(prompt: Prompt): Uint32Array;
  /** The event with which a rank reports that it holds a prompt, under names of its own. */
  stored(worker: Selection["worker"], prompt: Prompt, tier: "device" | "host_pinned"): unknown;
  removed(worker: Selection["worker"], prompt: Prompt): unknown;
}

/** Twelve prompts over the 32 blocks of a golden prompt; the first four share a beginning, as do the next four. */
export function traffic(golden: { tokens: number[]; block_hashes: string[] }): Traffic {
  const below = numbers(2463534242);
  const contents = golden.block_hashes.length;
  const prompts = Array.from({ length: 12 }, (_, i) => ({
    blocks: i < 8 ? [i >> 2, 5, 3, 8, i] : [below(contents), below(contents)],
    tail: below(BLOCK),
  }));
  /** An engine's name: the rank and the whole path, as engines name a block with its prefix. */
  const name = ({ workerId, dpRank }: Selection["worker"], path: readonly number[]) => {
    let hash = BigInt(workerId) * 2n + BigInt(dpRank) + 1n;
    for (const block of path) hash = BigInt.asUintN(64, (hash ^ BigInt(block + 1)) * 1099511628211n);
    return hash.toString();
  };
  const event = (worker: Selection["worker"], storage_tier: string, data: object) => ({
    worker_id: worker.workerId,
    storage_tier,
    event: { dp_rank: worker.dpRank, data },
  });
  return {
    prompts,
    tokens({ blocks, tail }) {
      const tokens = blocks.flatMap((block) => golden.tokens.slice(block * BLOCK, (block + 1) * BLOCK));
      for (let i = 0; i < tail; i++) tokens.push(900_000 + i);
      return Uint32Array.from(tokens);
    },
    stored(worker, { blocks }, tier) {
      const named = blocks.map((block, i) => ({
        block_hash: name(worker, blocks.slice(0, i + 1)),
        tokens_hash: golden.block_hashes[block] ?? "",
      }));
      return event(worker, tier, { stored: { parent_hash: null, blocks: named } });
    },
    removed(worker, { blocks }) {
      return event(worker, "device", { removed: { block_hashes: [name(worker, blocks)] } });
    },
  };
}

/** The request of step `i`: plain, or with a temperature, tastes, a pin or an allowed set. */
function request(i: number, tokens: Uint32Array): SelectRequest {
  return {
    requestId: `r${i}`,
    tokens,
    explain: true,
    ...(i % 4 === 3 && { configOverride: { routerTemperature: 0.5 } }),
    ...(i % 5 === 2 && { routingConstraints: { preferredTaints: { large: 0.7, spot: -0.4 } } }),
    ...(i % 11 === 7 && { pinnedWorker: { workerId: "3", dpRank: 1 } }),
    ...(i % 13 === 6 && { allowedWorkerIds: ["3", "5", "18446744073709551615"] }),
  };
}

/** Steps `from` … `to` − 1: each selects, books, and lets the chosen rank report what it now holds. */
export async function decide(router: Router, { prompts, tokens, stored, removed }: Traffic, from: number, to: number) {
  const below = numbers(88172645 + from);
  const live: Booking[] = [];
  const decisions = [];
  for (let i = from; i < to; i++) {
    const prompt = prompts[below(prompts.length)];
    if (!prompt) throw new Error("there are no prompts");
    for (let grow = below(3); grow > 0; grow--) prompt.blocks.push(below(32));
    prompt.tail = below(BLOCK);
    const { booking, worker, overlap, cachedTokens, effectivePrefillTokens, evidence, reason, tieDraw, candidates } =
      await router.select(request(i, tokens(prompt)));
    decisions.push({ worker, overlap, cachedTokens, effectivePrefillTokens, evidence, reason, tieDraw, candidates });
    router.applyEvent(stored(worker, prompt, i % 6 === 5 ? "host_pinned" : "device"));
    if (i % 8 === 4) router.applyEvent(removed(worker, prompt));
    live.push(booking);
    if (i % 3 === 1) booking.prefillComplete();
    if (i % 7 === 2) booking.outputBlock(0.5);
    if (live.length > 24) live.shift()?.free();
  }
  return decisions;
}
