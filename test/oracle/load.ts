// The load of ranks in plain TypeScript, a table of blocks a rank (spec/scheduling.md §1.3–1.5).

interface Block {
  refs: number;
  weight: number;
}

interface Rank {
  blocks: Map<bigint, Block>;
  bookings: Set<OracleBooking>;
}

export interface OracleBooking {
  rank: string;
  hashes: readonly bigint[];
  /** Weights of blocks shared with nobody: output blocks and private prompt blocks. */
  own: number[];
  prefillTokens: number;
}

export interface RankLoad {
  activeDecodeBlocks: number;
  activePrefillTokens: number;
  activeRequests: number;
}

export class LoadOracle {
  private readonly ranks = new Map<string, Rank>();

  addRank(rank: string): void {
    this.ranks.set(rank, { blocks: new Map(), bookings: new Set() });
  }

  /** Ends the rank's bookings with it. */
  removeRank(rank: string): OracleBooking[] {
    const ended = [...this.rank(rank).bookings];
    this.ranks.delete(rank);
    return ended;
  }

  book(rank: string, hashes: readonly bigint[], privateBlocks: number, prefillTokens: number): OracleBooking {
    const { blocks, bookings } = this.rank(rank);
    for (const hash of hashes) {
      const block = blocks.get(hash);
      if (block) block.refs++;
      else blocks.set(hash, { refs: 1, weight: 1 });
    }
    const booking = { rank, hashes, own: Array<number>(privateBlocks).fill(1), prefillTokens };
    bookings.add(booking);
    return booking;
  }

  prefillComplete(booking: OracleBooking): void {
    booking.prefillTokens = 0;
  }

  outputBlock(booking: OracleBooking, fraction?: number): void {
    booking.own.push(1);
    if (fraction === undefined) return;
    booking.own.fill(fraction);
    const { blocks } = this.rank(booking.rank);
    for (const hash of booking.hashes) {
      const block = blocks.get(hash)!;
      if (block.refs === 1) block.weight = fraction;
    }
  }

  free(booking: OracleBooking): void {
    const { blocks, bookings } = this.rank(booking.rank);
    bookings.delete(booking);
    for (const hash of booking.hashes) {
      const block = blocks.get(hash)!;
      if (--block.refs === 0) blocks.delete(hash);
    }
  }

  /** Sum of block weights before it is rounded. */
  weight(rank: string): number {
    const { blocks, bookings } = this.rank(rank);
    let sum = 0;
    for (const block of blocks.values()) sum += block.weight;
    for (const booking of bookings) for (const w of booking.own) sum += w;
    return sum;
  }

  load(rank: string): RankLoad {
    const { bookings } = this.rank(rank);
    let activePrefillTokens = 0;
    for (const booking of bookings) activePrefillTokens += booking.prefillTokens;
    return {
      activeDecodeBlocks: Math.floor(this.weight(rank) + 0.5),
      activePrefillTokens,
      activeRequests: bookings.size,
    };
  }

  /** How many leading blocks of a prompt the rank is working on. */
  active(rank: string, hashes: readonly bigint[]): number {
    const { blocks } = this.rank(rank);
    const end = hashes.findIndex((hash) => !blocks.has(hash));
    return end < 0 ? hashes.length : end;
  }

  private rank(rank: string): Rank {
    const found = this.ranks.get(rank);
    if (!found) throw new Error(`no rank ${rank}`);
    return found;
  }
}
