// A router and the oracles of its index, load and cost side by side: each verb is done on both and the answers
// are compared; `check` compares all that can be asked for.
import { expect } from "vitest";
import type { Booking, Selection, SelectRequest } from "../../src/router/contract.js";
import type { KvRouter } from "../../src/router/kv-router.js";
import { type CostRow, DEFAULT_PARAMS, IDLE_ROW, rowCosts } from "../oracle/cost.js";
import { IndexModel, type StoreAnswer } from "../oracle/index.js";
import { LoadOracle, type OracleBooking } from "../oracle/load.js";

export const TIERS = ["device", "host_pinned", "disk", "external"] as const;
const REASONS: Record<StoreAnswer, string> = {
  ok: "",
  orphan: "orphan",
  invalid: "invalid_sequence",
  foreign_name: "foreign_name",
};

/** A prompt with its local and sequence hashes; one without tokens can only be stored and asked for by hash. */
export interface Prompt {
  tokens?: Uint32Array;
  loraName?: string;
  locals: readonly bigint[];
  chain: readonly bigint[];
}

export interface Rank {
  workerId: string;
  dpRank: number;
  /** Its number in the index model, its name in the load oracle. */
  key: number;
  name: string;
}

/** Both sides of a live booking. */
interface Live {
  booking: Booking;
  oracle: OracleBooking;
  /** Prompt and generated tokens, and how many are expected (0 = unknown). */
  tokens: number;
  generated: number;
  expected: number;
}

type Worker = Parameters<KvRouter["addWorker"]>[0] & { workerId: string; dpSize: number };

export class Twin {
  readonly model: IndexModel;
  readonly live = new Map<string, Live>();
  /** Bookings that ended, by free or with their rank. */
  readonly ended: Booking[] = [];
  readonly workers = new Map<string, Worker>();
  private readonly load = new LoadOracle();
  private readonly keys = new Map<string, number>();
  private counts = { orphans: 0, refused: 0, decisions: 0 };

  constructor(
    readonly router: KvRouter,
    private readonly tracksOutput: boolean,
  ) {
    this.model = new IndexModel(router.ownNames);
  }

  // ---- workers

  private rank(workerId: string, dpRank: number): Rank {
    const name = `${workerId}/${dpRank}`;
    let key = this.keys.get(name);
    if (key === undefined) {
      key = this.keys.size;
      this.keys.set(name, key);
    }
    return { workerId, dpRank, key, name };
  }

  private ranksOf({ workerId, dpSize }: Worker): Rank[] {
    return Array.from({ length: dpSize }, (_, dpRank) => this.rank(workerId, dpRank));
  }

  /** Every rank, by worker id as a number, then rank. */
  ranks(): Rank[] {
    return [...this.workers.values()]
      .flatMap((worker) => this.ranksOf(worker))
      .sort((a, b) =>
        a.workerId === b.workerId ? a.dpRank - b.dpRank : BigInt(a.workerId) < BigInt(b.workerId) ? -1 : 1,
      );
  }

  /** Adds a worker or updates the one with its id. */
  addWorker(worker: Worker): void {
    this.router.addWorker(worker);
    const old = this.workers.get(worker.workerId);
    this.workers.set(worker.workerId, worker);
    const before = old ? this.ranksOf(old) : [];
    for (const rank of this.ranksOf(worker)) {
      if (!before.some(({ key }) => key === rank.key)) this.load.addRank(rank.name);
      else if (old?.incarnation !== worker.incarnation) this.restart(rank);
    }
    for (const rank of before.slice(worker.dpSize)) this.leave(rank);
  }

  removeWorker(workerId: string): void {
    const worker = this.workers.get(workerId);
    expect(this.router.removeWorker(workerId)).toBe(worker !== undefined);
    if (!worker) return;
    this.workers.delete(workerId);
    for (const rank of this.ranksOf(worker)) this.leave(rank);
  }

  private leave(rank: Rank): void {
    this.model.clearRank(rank.key);
    this.end(this.load.removeRank(rank.name));
  }

  private restart(rank: Rank): void {
    this.model.clearRank(rank.key);
    const ended = [...this.live.values()].map(({ oracle }) => oracle).filter((oracle) => oracle.rank === rank.name);
    for (const oracle of ended) this.load.free(oracle);
    this.end(ended);
  }

  private end(ended: readonly OracleBooking[]): void {
    for (const { booking, oracle } of this.live.values()) if (ended.includes(oracle)) this.drop(booking);
  }

  private drop(booking: Booking): void {
    this.live.delete(booking.requestId);
    this.ended.push(booking);
    expect(this.router.booking(booking.requestId)).toBeUndefined();
  }

  // ---- cache contents

  private known({ workerId, dpRank }: Rank): boolean {
    return dpRank < (this.workers.get(workerId)?.dpSize ?? 0);
  }

  private refusal({ workerId }: Rank): { applied: false; reason: string } {
    this.counts.refused++;
    return { applied: false, reason: this.workers.has(workerId) ? "unknown_rank" : "unknown_worker" };
  }

  /** `apply` tells the router; the ranks of workers that are not there are refused. */
  store(
    rank: Rank,
    tier: number,
    parent: bigint | null,
    names: readonly bigint[],
    locals: readonly bigint[],
    apply: () => { applied: boolean; reason?: string },
  ): void {
    const answer = apply();
    if (!this.known(rank)) {
      expect(answer).toEqual(this.refusal(rank));
      return;
    }
    const expected = this.model.store(rank.key, tier, parent, names, locals);
    expect(answer).toEqual(expected === "ok" ? { applied: true } : { applied: false, reason: REASONS[expected] });
    if (expected === "orphan") this.counts.orphans++;
    else if (expected !== "ok") this.counts.refused++;
  }

  remove(rank: Rank, tier: number, names: readonly bigint[]): void {
    const got = this.router.removeBlocks(rank, TIERS[tier]!, BigUint64Array.from(names));
    expect(got).toBe(this.known(rank) ? this.model.remove(rank.key, tier, names) : 0);
  }

  /** A `removed` or `cleared` event. */
  event(rank: Rank, event: object, change: () => void): void {
    const answer = this.router.applyEvent(event);
    if (!this.known(rank)) expect(answer).toEqual(this.refusal(rank));
    else {
      expect(answer).toEqual({ applied: true });
      change();
    }
  }

  // ---- decisions and bookings

  /** The oracle's rows for a prompt, in the order of ranks(), and their costs. */
  private rows(prompt: Prompt): { rows: CostRow[]; costs: number[]; tokens: number } {
    const tokens = prompt.tokens!.length;
    const { blockSize } = this.router;
    const depth = this.model.find(prompt.chain);
    const lower = this.model.findLower(prompt.chain);
    const rows = this.ranks().map(({ key, name }): CostRow => {
      const load = this.load.load(name);
      return {
        ...IDLE_ROW,
        prefill: load.activePrefillTokens,
        decode: load.activeDecodeBlocks,
        requests: load.activeRequests,
        device: depth.get(key) ?? 0,
        host: lower.get(key)?.host ?? 0,
        disk: lower.get(key)?.disk ?? 0,
        active: this.load.active(name, prompt.chain),
      };
    });
    const costs = rowCosts(rows, DEFAULT_PARAMS, {
      promptTokens: tokens,
      blockSize,
      requestBlocks: Math.ceil(tokens / blockSize),
      sequenceBlocks: prompt.chain.length,
      track: true,
      decodeRole: false,
      taints: false,
    });
    return { rows, costs, tokens };
  }

  probe(prompt: Prompt): void {
    const { costs } = this.rows(prompt);
    const got = this.router.probe({ tokens: prompt.tokens!, ...loraOf(prompt) });
    expect(got.outcome).toBe(costs.length ? "selected" : "no_endpoints");
    expect(got.candidates.map((c) => [c.workerId, c.dpRank, c.cost])).toEqual(
      this.ranks().map(({ workerId, dpRank }, row) => [workerId, dpRank, costs[row]]),
    );
  }

  async select(requestId: string, prompt: Prompt, expected: number, pin?: Rank): Promise<void> {
    const request: SelectRequest = { requestId, tokens: prompt.tokens!, ...loraOf(prompt) };
    if (expected) request.expectedOutputTokens = expected;
    if (pin) request.pinnedWorker = { workerId: pin.workerId, dpRank: pin.dpRank };
    const { rows, costs, tokens } = this.rows(prompt);
    const ranks = this.ranks();
    const code = this.live.has(requestId) ? "duplicate_request" : ranks.length ? undefined : "no_endpoints";
    if (code) {
      await expect(this.router.select(request)).rejects.toMatchObject({ code });
      return;
    }
    const selection: Selection = await this.router.select(request);
    const { workerId, dpRank } = selection.worker;
    const least = Math.min(...costs);
    const tied = ranks.filter((_, row) => costs[row] === least);
    if (!pin) expect(selection.tieDraw === undefined).toBe(tied.length === 1);
    const chosen = pin ?? tied[selection.tieDraw ?? 0]!;
    expect([workerId, dpRank]).toEqual([chosen.workerId, chosen.dpRank]);
    const { device, host, disk } = rows[ranks.findIndex(({ key }) => key === chosen.key)]!;
    const cached = Math.floor((device + 0.75 * host + 0.25 * disk) * this.router.blockSize + 0.5);
    const charged = Math.max(0, tokens - cached);
    expect(selection).toMatchObject({
      overlap: { deviceBlocks: device, hostBlocks: host, diskBlocks: disk, sharedBlocks: 0 },
      cachedTokens: cached,
      effectivePrefillTokens: charged,
      evidence: device + host + disk > 0 ? "events" : "none",
    });
    this.counts.decisions++;
    const oracle = this.load.book(chosen.name, prompt.chain, 0, charged);
    this.live.set(requestId, { booking: selection.booking, oracle, tokens, generated: 0, expected });
  }

  reserve(requestId: string, rank: Rank, chain: readonly bigint[], islTokens: number, charged?: number): void {
    const reserve = () =>
      this.router.reserve({
        requestId,
        worker: { workerId: rank.workerId, dpRank: rank.dpRank },
        sequenceHashes: BigUint64Array.from(chain),
        islTokens,
        ...(charged === undefined ? {} : { effectivePrefillTokens: charged }),
      });
    const code = !this.known(rank) ? "unknown_worker" : this.live.has(requestId) ? "duplicate_request" : undefined;
    if (code) {
      expect(reserve).toThrowError(expect.objectContaining({ code }));
      return;
    }
    const booking = reserve();
    const oracle = this.load.book(rank.name, chain, 0, charged ?? islTokens);
    this.live.set(requestId, { booking, oracle, tokens: islTokens, generated: 0, expected: 0 });
  }

  prefillComplete({ booking, oracle }: Live): void {
    booking.prefillComplete();
    this.load.prefillComplete(oracle);
  }

  outputBlock({ booking, oracle }: Live, fraction: number | undefined): void {
    booking.outputBlock(fraction);
    this.load.outputBlock(oracle, fraction);
  }

  tokens(live: Live, n: number): void {
    live.booking.tokens(n);
    if (n > 0) this.load.prefillComplete(live.oracle);
    if (!this.tracksOutput) return;
    const blocks = () => Math.floor((live.tokens + live.generated) / this.router.blockSize);
    const before = blocks();
    live.generated += n;
    const fraction = live.expected ? Math.max(0, 1 - live.generated / live.expected) : undefined;
    for (let i = blocks() - before; i > 0; i--) this.load.outputBlock(live.oracle, fraction);
  }

  free({ booking, oracle }: Live): void {
    booking.free();
    this.load.free(oracle);
    this.drop(booking);
  }

  // ---- everything that can be asked

  check(prompts: readonly Prompt[]): void {
    const { router, model } = this;
    const ranks = this.ranks();
    for (const prompt of prompts) {
      const depth = model.find(prompt.chain);
      const lower = model.findLower(prompt.chain);
      const expected = ranks
        .filter(({ key }) => depth.has(key) || lower.has(key))
        .map(({ workerId, dpRank, key }) => {
          const { host = 0, disk = 0 } = lower.get(key) ?? {};
          return { workerId, dpRank, deviceBlocks: depth.get(key) ?? 0, hostBlocks: host, diskBlocks: disk };
        });
      const asked = prompt.tokens
        ? { tokens: prompt.tokens, ...loraOf(prompt) }
        : { blockHashes: BigUint64Array.from(prompt.locals) };
      expect(router.overlap(asked)).toEqual(expected);
    }
    expect(router.loads()).toEqual(
      ranks.map(({ workerId, dpRank, name }) => ({ workerId, dpRank, ...this.load.load(name) })),
    );
    const { index, bookings, decisions } = router.stats();
    expect({ ...this.counts, blocks: index.blocks, live: bookings.live }).toEqual({
      orphans: index.orphans,
      refused: index.refused,
      decisions,
      blocks: TIERS.reduce((sum, _, tier) => sum + model.held(tier), 0),
      live: this.live.size,
    });
  }
}

const loraOf = ({ loraName }: Prompt) => (loraName === undefined ? {} : { loraName });
