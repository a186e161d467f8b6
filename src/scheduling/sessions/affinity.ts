import type { Clock } from "../../core/clock.js";
import type { WorkerRank } from "../../core/types.js";

export interface SessionAffinityOptions {
  clock: Clock;
  /** How long a session without requests stays bound, in milliseconds. */
  ttlMs: number;
  /** Idle sessions beyond this many are forgotten, the longest idle first; 100,000 unless given. */
  maxIdle?: number;
}

interface Session {
  worker: WorkerRank | undefined;
  /** Requests that are live. */
  requests: number;
  /** On the router's clock; holds while there are none. */
  idleSinceMs: number;
  /** A worker has answered since the session was last idle. */
  hasAnswer: boolean;
}

/**
 * Which rank each session last had an answer from (spec: scheduling.md §6, plugins.md §3.6). Nothing is armed: what
 * has expired goes when the bindings are next looked at.
 */
export class SessionAffinity {
  /** Sessions that were idle for too long, and those that had to make room. */
  expired = 0;
  evicted = 0;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #maxIdle: number;
  readonly #active = new Map<string, Session>();
  /** In the order in which they fell idle; each has a worker. */
  readonly #idle = new Map<string, Session>();

  constructor({ clock, ttlMs, maxIdle = 100_000 }: SessionAffinityOptions) {
    this.#clock = clock;
    this.#ttlMs = ttlMs;
    this.#maxIdle = maxIdle;
  }

  /** Sessions that are known, bound or not yet. */
  get size(): number {
    this.#sweep();
    return this.#active.size + this.#idle.size;
  }

  target(sessionId: string): WorkerRank | undefined {
    this.#sweep();
    const idle = this.#idle.get(sessionId);
    if (idle && this.#isOld(idle)) return undefined;
    return (this.#active.get(sessionId) ?? idle)?.worker;
  }

  /** One more request of the session is live: until it has ended, the binding does not expire. */
  began(sessionId: string): void {
    this.#sweep();
    const session = this.#active.get(sessionId) ?? this.#idle.get(sessionId);
    this.#idle.delete(sessionId);
    if (session) session.requests++;
    this.#active.set(sessionId, session ?? { worker: undefined, requests: 1, idleSinceMs: 0, hasAnswer: false });
  }

  /** A rank answers a request that has begun: there the session goes from now on. */
  answered(sessionId: string, worker: WorkerRank): void {
    const session = this.#active.get(sessionId);
    if (!session) return;
    session.worker = worker;
    session.hasAnswer = true;
  }

  /** A request that had begun is over; with `final`, so is its session. */
  ended(sessionId: string, final = false): void {
    const session = this.#active.get(sessionId);
    if (!session) return;
    if (final) session.worker = undefined;
    session.requests--;
    if (session.requests > 0) return;
    this.#active.delete(sessionId);
    if (!session.worker) return;
    // Requests that no worker answered do not keep the session.
    if (session.hasAnswer) session.idleSinceMs = this.#clock.now();
    session.hasAnswer = false;
    this.#idle.set(sessionId, session);
    this.#sweep();
  }

  /** A rank is no more: nothing is bound to it. */
  rankGone({ workerId, dpRank }: WorkerRank): void {
    const isThere = ({ worker }: Session) => worker?.workerId === workerId && worker.dpRank === dpRank;
    for (const session of this.#active.values()) if (isThere(session)) session.worker = undefined;
    for (const [id, session] of this.#idle) if (isThere(session)) this.#idle.delete(id);
  }

  #isOld({ idleSinceMs }: Session): boolean {
    return idleSinceMs <= this.#clock.now() - this.#ttlMs;
  }

  #sweep(): void {
    for (const [id, session] of this.#idle) {
      const old = this.#isOld(session);
      if (!old && this.#idle.size <= this.#maxIdle) return;
      this.#idle.delete(id);
      if (old) this.expired++;
      else this.evicted++;
    }
  }
}
