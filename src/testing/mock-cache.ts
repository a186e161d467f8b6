import type { PromptHashes } from "../kernel/hash.js";
import { BlockPool } from "../replay/block-pool.js";

/** The blocks of one prompt in the cache, pinned until they are released. */
export interface HeldPrompt {
  /** Leading blocks that were there before. */
  cachedBlocks: number;
  /** Leading blocks that are there now; fewer than the prompt's where pinned blocks leave no room. */
  heldBlocks: number;
  /** Names of the blocks that had to go. */
  evicted: bigint[];
  ids: Uint32Array;
}

/**
 * A KV prefix cache by sequence hash over the block pool of the engine model. Blocks that nobody holds stay until
 * their room is needed; the one released longest ago goes first, children before parents.
 */
export class MockCache {
  readonly #pool: BlockPool;
  readonly #ids = new Map<bigint, number>();
  readonly #names = new Map<number, bigint>();
  #nextId = 0;

  constructor(readonly capacityBlocks: number) {
    this.#pool = new BlockPool(capacityBlocks);
  }

  /** Share of the blocks that running requests hold. */
  get usage(): number {
    return this.#pool.used / this.capacityBlocks;
  }

  /** Blocks that a prompt could find, held or not. */
  get blocks(): number {
    return this.#names.size;
  }

  /** Pins a prompt's blocks and stores what is missing. */
  hold({ sequenceHashes }: PromptHashes): HeldPrompt {
    const ids = new Uint32Array(sequenceHashes.length);
    let cachedBlocks = 0;
    let heldBlocks = 0;
    for (const name of sequenceHashes) {
      const known = this.#ids.get(name);
      const id = known ?? this.#nextId++;
      ids[heldBlocks] = id;
      if (!this.#pool.fits(ids, heldBlocks, heldBlocks + 1, 0)) break;
      this.#pool.hold(id);
      if (known === undefined) {
        this.#ids.set(name, id);
        this.#names.set(id, name);
      } else cachedBlocks++;
      heldBlocks++;
    }
    return { cachedBlocks, heldBlocks, evicted: this.#pool.takeEvicted().map((id) => this.#forget(id)), ids };
  }

  release(held: HeldPrompt): void {
    this.#pool.release(held.ids, held.heldBlocks);
  }

  #forget(id: number): bigint {
    const name = this.#names.get(id)!;
    this.#names.delete(id);
    this.#ids.delete(name);
    return name;
  }
}
