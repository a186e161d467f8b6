import { armTimer, type Clock } from "../../core/clock.js";
import { WarmrouteError } from "../../core/errors.js";
import type { PolicyClass } from "../../plugins/policy/contract.js";
import { ClassQueue } from "./class-queue.js";
import type { LaneKey, Parked, QueuePool, QueueStats } from "./contract.js";
import { DeficitRoundRobin } from "./drr.js";
import { mayQueue } from "./policy-class.js";
import { scoreOf, type Waiter } from "./waiter.js";

export interface PoolQueueOptions {
  pool: QueuePool;
  clock: Clock;
  /** The classes of the profile, in its order, which is that of the round robin. */
  classes: readonly PolicyClass[];
  /** How long a lower strict tier waits for a higher one at most; 0: for ever. */
  strictPriorityMaxWaitMs: number;
  /** How often a waiting request looks whether something changed that nobody told. */
  recheckMs: number;
}

/**
 * The queue of one pool. Requests wait only while every rank that may take them is busy; each keeps a timer of its own,
 * so that no wait depends on another request, and nothing is armed at rest.
 */
export class PoolQueue {
  readonly #pool: QueuePool;
  readonly #clock: Clock;
  readonly #strictPriorityMaxWaitMs: number;
  readonly #recheckMs: number;
  readonly #classes = new Map<PolicyClass, ClassQueue>();
  readonly #ring = new DeficitRoundRobin<ClassQueue>();
  /** Slots whose load changed since the last look; all while undefined. */
  #changed: Set<number> | undefined = new Set();
  #isScheduled = false;
  #isDraining = false;
  #closed: Error | undefined;
  #pending = 0;
  #sequence = 0;
  #rejected = 0;
  #overdue = 0;
  #cancelled = 0;

  constructor({ pool, clock, classes, strictPriorityMaxWaitMs, recheckMs }: PoolQueueOptions) {
    this.#pool = pool;
    this.#clock = clock;
    this.#strictPriorityMaxWaitMs = strictPriorityMaxWaitMs;
    this.#recheckMs = recheckMs;
    for (const policyClass of classes) this.#of(policyClass);
  }

  /** Requests that wait. */
  get pending(): number {
    return this.#pending;
  }

  #of(policyClass: PolicyClass): ClassQueue {
    let queue = this.#classes.get(policyClass);
    if (!queue) {
      queue = new ClassQueue(policyClass, this.#pool, () => this.#clock.now(), this.#strictPriorityMaxWaitMs);
      this.#classes.set(policyClass, queue);
      this.#ring.add(queue);
    }
    return queue;
  }

  /**
   * Whether a newcomer must wait: each of its ranks is busy, or others of its class wait for one of them. Without a
   * threshold (see `mayQueue`), or a rank, never.
   */
  mustWait(policyClass: PolicyClass, lane: LaneKey): boolean {
    if (!mayQueue(policyClass)) return false;
    this.#pool.refresh();
    const slots = lane.slots();
    if (slots.length === 0) return false;
    const queue = this.#of(policyClass);
    if (queue.waitsFor(lane, slots)) return true;
    return slots.every(queue.isBusy);
  }

  /**
   * Waits until the request's turn has come, then answers what `run` answers, which is called at once then with the slots
   * that are kept for others, if there are any. Rejects with
   * `queue_rejected`, `deadline_exceeded`, the signal's reason, what `run` throws, or the error of `close`.
   */
  park<T>(parked: Parked, run: (kept: ReadonlySet<number> | undefined) => T, signal?: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#closed) throw this.#closed;
      signal?.throwIfAborted();
      const nowMs = this.#clock.now();
      const dueAtMs = parked.dueAtMs ?? Number.POSITIVE_INFINITY;
      if (dueAtMs <= nowMs) throw this.#late();
      const queue = this.#of(parked.policyClass);
      try {
        queue.assertRoom();
      } catch (error) {
        this.#rejected++;
        throw error;
      }
      let stopTimer = () => {};
      const end = () => {
        this.#pending--;
        stopTimer();
        signal?.removeEventListener("abort", onAbort);
      };
      const waiter: Waiter = {
        ...{ parked, place: -1, bypassed: 0, sinceMs: nowMs },
        ...{ tier: parked.strictPriority, dueAtMs },
        score: scoreOf(parked),
        sequence: this.#sequence++,
        go: (kept) => {
          end();
          try {
            resolve(run(kept));
          } catch (error) {
            reject(error);
          }
        },
        refuse: (error) => {
          end();
          reject(error);
        },
      };
      const onAbort = () => {
        this.#cancelled++;
        this.#leave(queue, waiter, signal!.reason);
      };
      const look = () => {
        if (dueAtMs <= this.#clock.now()) this.#leave(queue, waiter, this.#late());
        else {
          arm();
          this.changed();
        }
      };
      const arm = () => {
        stopTimer = armTimer(this.#clock, look, Math.min(dueAtMs - this.#clock.now(), this.#recheckMs));
      };
      const isNewLane = queue.add(waiter);
      this.#pending++;
      arm();
      signal?.addEventListener("abort", onAbort);
      // A new lane may find room where others of its class do not.
      if (isNewLane) this.#wake();
    });
  }

  #late(): WarmrouteError {
    this.#overdue++;
    return new WarmrouteError("deadline_exceeded", "the request was due before a rank had room for it");
  }

  #leave(queue: ClassQueue, waiter: Waiter, error: unknown): void {
    queue.remove(waiter);
    this.#ring.left(queue);
    waiter.refuse(error);
    this.#wake();
  }

  /** The load of a rank changed; of any rank without a slot. The queue looks soon who may go now. */
  changed(slot?: number): void {
    if (this.#pending === 0) return;
    if (slot === undefined) this.#changed = undefined;
    else this.#changed?.add(slot);
    this.#wake();
  }

  #wake(): void {
    if (this.#isScheduled || this.#pending === 0) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.drain();
    });
  }

  /** Lets go who may, one after the other: each has its booking before the next is looked at. */
  drain(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    try {
      this.#pool.refresh();
      this.#tell();
      for (let queue = this.#ring.next(); queue; queue = this.#ring.next()) {
        const waiter = queue.next()!;
        if (waiter.dueAtMs <= this.#clock.now()) {
          this.#leave(queue, waiter, this.#late());
          continue;
        }
        const kept = queue.keptFrom(waiter);
        queue.take(waiter);
        this.#ring.took(queue, waiter.parked.costTokens);
        waiter.go(kept);
      }
    } catch (error) {
      // The pool cannot say what its ranks do: nobody's turn would ever come.
      this.#refuseAll(error);
    } finally {
      this.#isDraining = false;
    }
  }

  /** Tells the lanes what changed. */
  #tell(): void {
    const changed = this.#changed;
    this.#changed = new Set();
    for (const queue of this.#classes.values()) {
      if (!changed) queue.changed();
      else for (const slot of changed) queue.changed(slot);
    }
  }

  /** Answers all that wait with this error, and all that come. */
  close(error: Error): void {
    this.#closed = error;
    this.#refuseAll(error);
  }

  #refuseAll(error: unknown): void {
    for (const queue of this.#classes.values()) for (const waiter of [...queue]) this.#leave(queue, waiter, error);
  }

  stats(): QueueStats {
    const byClass: Record<string, number> = {};
    let pendingIslTokens = 0;
    for (const { policyClass, size, rawTokens } of this.#classes.values()) {
      if (size > 0) byClass[policyClass.name] = size;
      pendingIslTokens += rawTokens;
    }
    return {
      ...{ pending: this.#pending, pendingIslTokens, byClass },
      ...{ rejected: this.#rejected, overdue: this.#overdue, cancelled: this.#cancelled },
    };
  }
}
