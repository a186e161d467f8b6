import { Random } from "../core/random.js";

/** Where a request goes. */
export interface Placement {
  worker: number;
  /** What the router believed to be cached, in blocks; absent where it does not look. */
  overlap?: { selectedBlocks: number; bestBlocks: number };
}

/** A router under test. Workers and requests are indices; blocks are ids of `Prompts`. */
export interface ReplayRouter {
  route(request: number): Placement | Promise<Placement>;
  prefillCompleted(request: number): void;
  /** The request left its worker, also when that refused it. */
  finished(request: number): void;
  blocksRemoved(worker: number, blocks: readonly number[]): void;
  /** `parent` is the block before the first one, −1 at the start of a prompt. */
  blocksStored(worker: number, parent: number, blocks: readonly number[]): void;
  close(): Promise<void>;
}

/** What the routers that look at load alone have in common: they need no word of caches or phases. */
abstract class LoadRouter implements ReplayRouter {
  constructor(protected readonly workers: number) {}
  abstract route(request: number): Placement;
  finished(_request: number): void {}
  prefillCompleted(): void {}
  blocksRemoved(): void {}
  blocksStored(): void {}
  async close(): Promise<void> {}
}

/** Each worker in turn. */
export class RoundRobin extends LoadRouter {
  private turn = 0;

  route(): Placement {
    return { worker: this.turn++ % this.workers };
  }
}

/** Any worker, with equal chances; one draw a request. */
export class RandomChoice extends LoadRouter {
  private readonly random: Random;

  constructor(workers: number, seed: bigint) {
    super(workers);
    this.random = new Random(seed);
  }

  route(): Placement {
    return { worker: this.random.below(this.workers) };
  }
}

/** The worker with the fewest requests in flight; ties are drawn, one draw a request. */
export class LeastLoaded extends LoadRouter {
  private readonly random: Random;
  private readonly inFlight: number[];
  private readonly placed = new Map<number, number>();

  constructor(workers: number, seed: bigint) {
    super(workers);
    this.random = new Random(seed);
    this.inFlight = new Array<number>(workers).fill(0);
  }

  override route(request: number): Placement {
    const least = Math.min(...this.inFlight);
    const tied = [...this.inFlight.keys()].filter((worker) => this.inFlight[worker] === least);
    const worker = tied[this.random.below(tied.length)]!;
    this.inFlight[worker]!++;
    this.placed.set(request, worker);
    return { worker };
  }

  override finished(request: number): void {
    this.inFlight[this.placed.get(request)!]!--;
    this.placed.delete(request);
  }
}
