/**
 * The KV blocks of one rank. A block is either
 *   own       part of one request only (a partial block, or generated tokens),
 *   active    a full prompt block that running requests hold (counted references),
 *   inactive  a full prompt block that nobody holds, kept for reuse until its room is needed, or
 *   free.
 * Holders release from the tail of a prompt to its head, so the order of release is also leaf first: evicting
 * the block released longest ago never takes a parent before its children (the "lineage" order), and what is
 * resident of any prompt is always a leading run.
 */
export class BlockPool {
  private readonly slots = new Map<number, number>();
  // By slot; slots are numbered from 1 as they are needed.
  private readonly blockOf: number[] = [0];
  private readonly references: number[] = [0];
  // A ring of inactive slots in order of release; 0 is its head.
  private readonly next: number[] = [0];
  private readonly previous: number[] = [0];
  private readonly spareSlots: number[] = [];
  private ownBlocks = 0;
  private activeBlocks = 0;
  private inactiveBlocks = 0;
  private evicted: number[] = [];

  constructor(readonly capacity: number) {}

  /** Blocks in use by requests. */
  get used(): number {
    return this.ownBlocks + this.activeBlocks;
  }

  /** Full prompt blocks kept though nobody holds them. */
  get inactive(): number {
    return this.inactiveBlocks;
  }

  get free(): number {
    return this.capacity - this.ownBlocks - this.activeBlocks - this.inactiveBlocks;
  }

  /** How many of the first `limit` blocks are resident without a gap. */
  resident(blocks: Uint32Array, limit: number): number {
    let n = 0;
    while (n < limit && this.slots.has(blocks[n]!)) n++;
    return n;
  }

  /** Whether `blocks[from … to)` can be held and `own` more own blocks (or fewer, if negative) taken. */
  fits(blocks: Uint32Array, from: number, to: number, own: number): boolean {
    let room = this.free + this.inactiveBlocks - own;
    for (let i = from; i < to; i++) {
      const slot = this.slots.get(blocks[i]!);
      if (slot === undefined || this.references[slot] === 0) room--;
    }
    return room >= 0;
  }

  /** Holds a full prompt block; true when it was not resident and has to be computed. The caller asked `fits`. */
  hold(block: number): boolean {
    const known = this.slots.get(block);
    if (known !== undefined) {
      if (this.references[known]!++ === 0) {
        this.unlink(known);
        this.inactiveBlocks--;
        this.activeBlocks++;
      }
      return false;
    }
    this.makeRoom(1);
    const slot = this.spareSlots.pop() ?? this.references.length;
    this.slots.set(block, slot);
    this.blockOf[slot] = block;
    this.references[slot] = 1;
    this.activeBlocks++;
    return true;
  }

  /** Releases the first `count` blocks of a prompt, last one first. */
  release(blocks: Uint32Array, count: number): void {
    for (let i = count - 1; i >= 0; i--) {
      const slot = this.slots.get(blocks[i]!)!;
      if (--this.references[slot]! > 0) continue;
      this.activeBlocks--;
      this.inactiveBlocks++;
      this.append(slot);
    }
  }

  /** Takes `count` own blocks, or gives them back if negative. The caller asked `fits`. */
  takeOwn(count: number): void {
    this.makeRoom(count);
    this.ownBlocks += count;
  }

  /** The blocks evicted since the last call, in order. */
  takeEvicted(): number[] {
    const evicted = this.evicted;
    if (evicted.length > 0) this.evicted = [];
    return evicted;
  }

  private makeRoom(count: number): void {
    for (let missing = count - this.free; missing > 0; missing--) {
      const slot = this.next[0]!;
      const block = this.blockOf[slot]!;
      this.unlink(slot);
      this.slots.delete(block);
      this.spareSlots.push(slot);
      this.inactiveBlocks--;
      this.evicted.push(block);
    }
  }

  private append(slot: number): void {
    const last = this.previous[0]!;
    this.next[last] = slot;
    this.previous[slot] = last;
    this.next[slot] = 0;
    this.previous[0] = slot;
  }

  private unlink(slot: number): void {
    const before = this.previous[slot]!;
    const after = this.next[slot]!;
    this.next[before] = after;
    this.previous[after] = before;
  }
}
