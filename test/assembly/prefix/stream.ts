// A stream of operations on the index, run against a subject and the exact model side by side.
import { IndexModel, type StoreAnswer } from "../../oracle/index.js";
import { STATUS } from "./harness.js";

/** What a stream drives: the kernel's index, or one that is wrong on purpose. Ranks are slots to it. */
export interface Subject {
  store(slot: number, tier: number, parent: bigint | null, names: readonly bigint[], locals: readonly bigint[]): number;
  remove(slot: number, tier: number, names: readonly bigint[]): number;
  clearRank(slot: number): number;
  find(chain: readonly bigint[]): Map<number, number>;
  findLower(chain: readonly bigint[]): Map<number, { host: number; disk: number }>;
  check(): void;
}

/** A rank is a number that means the same rank for ever; one that leaves and joins again is empty. */
export type Operation =
  | { kind: "join" | "leave" | "clear"; rank: number }
  | {
      kind: "store";
      rank: number;
      tier: number;
      parent: bigint | null;
      names: readonly bigint[];
      locals: readonly bigint[];
    }
  | { kind: "remove"; rank: number; tier: number; names: readonly bigint[] };

/** An operation, and the chains to ask for after it. */
export interface Step {
  operation: Operation;
  queries: readonly (readonly bigint[])[];
}

/** Subject and model disagree after (or in) step `at`. */
export class Difference extends Error {
  constructor(
    readonly at: number,
    cause: unknown,
  ) {
    super((cause as Error).message, { cause });
  }
}

const ANSWERS: Record<StoreAnswer, number> = {
  ok: STATUS.OK,
  orphan: STATUS.ORPHAN,
  invalid: STATUS.INVALID_SEQUENCE,
  foreign_name: STATUS.FOREIGN_NAME,
};

const SLOTS = 8;

/**
 * Both sides of one stream. A rank that joins gets the slot that was left last, as in a pool. Operations of
 * ranks that are not there do nothing, so that any part of a stream is a stream.
 */
class Pair {
  queries = 0;
  private readonly model: IndexModel;
  private readonly slots = new Map<number, number>();
  private readonly free = Array.from({ length: SLOTS }, (_, i) => SLOTS - 1 - i);

  constructor(
    private readonly subject: Subject,
    ownNames: boolean,
  ) {
    this.model = new IndexModel(ownNames);
  }

  perform(operation: Operation): void {
    const { model, subject } = this;
    const { kind, rank } = operation;
    const slot = this.slots.get(rank);
    if (kind === "join") {
      if (slot === undefined) this.slots.set(rank, this.free.pop() as number);
      return;
    }
    if (slot === undefined) return;
    if (kind === "store") {
      const { tier, parent, names, locals } = operation;
      const expected = model.store(rank, tier, parent, names, locals);
      agree("store", subject.store(slot, tier, parent, names, locals), ANSWERS[expected]);
    } else if (kind === "remove") {
      const { tier, names } = operation;
      agree("remove", subject.remove(slot, tier, names), model.remove(rank, tier, names));
    } else {
      agree(kind, subject.clearRank(slot), model.clearRank(rank));
      if (kind === "clear") return;
      this.slots.delete(rank);
      this.free.push(slot);
    }
  }

  ask(chain: readonly bigint[]): void {
    this.queries++;
    const { model, subject } = this;
    const lower = model.findLower(chain);
    const gotLower = subject.findLower(chain);
    agree("ranks with lower tiers", gotLower.size, lower.size);
    const depths = model.find(chain);
    const got = subject.find(chain);
    agree("ranks with a score", got.size, depths.size);
    for (const [rank, slot] of this.slots) {
      agree(`score of rank ${rank}`, got.get(slot) ?? 0, depths.get(rank) ?? 0);
      agree(`host blocks of rank ${rank}`, gotLower.get(slot)?.host ?? 0, lower.get(rank)?.host ?? 0);
      agree(`disk blocks of rank ${rank}`, gotLower.get(slot)?.disk ?? 0, lower.get(rank)?.disk ?? 0);
    }
  }

  /** Every rank leaves. */
  end(): void {
    for (const rank of [...this.slots.keys()]) this.perform({ kind: "leave", rank });
    this.subject.check();
  }
}

function agree(what: string, got: number, expected: number): void {
  if (got !== expected) throw new Error(`${what}: ${got}, the model ${expected}`);
}

/** Runs a stream to its end, when every rank leaves; answers how many queries were compared. Throws a Difference. */
export function replay(subject: Subject, ownNames: boolean, stream: readonly Step[]): number {
  const pair = new Pair(subject, ownNames);
  for (const [at, { operation, queries }] of stream.entries()) {
    try {
      pair.perform(operation);
      for (const chain of queries) pair.ask(chain);
      if (at % 16 === 0 || at === stream.length - 1) subject.check();
    } catch (error) {
      throw new Difference(at, error);
    }
  }
  try {
    pair.end();
  } catch (error) {
    throw new Difference(stream.length - 1, error);
  }
  return pair.queries;
}
