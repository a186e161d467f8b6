import type { KvRouterConfig } from "../core/config.js";
import { WarmrouteError } from "../core/errors.js";
import type { Candidate, Reason } from "../core/types.js";
import { Answer } from "../kernel/abi.js";
import type { WorkerInputs } from "../plugins/worker-selection/components.js";
import { type AffinityTarget, affinityOf, type Binding, bindingOf } from "./binding.js";
import { type Constraints, readConstraints } from "./eligibility.js";
import { explainDecision, programCandidates, scoredCandidates } from "./explain.js";
import { PolicyRun } from "./policy/policy-run.js";
import type { Explanation, Pool, PoolRequest } from "./pool.js";
import { RequestFlag, writeRequest } from "./request.js";
import { drawsOf, selectionContext } from "./selection-context.js";

/** A request as it was read and written: nothing of it is refused any more. */
export interface Asked {
  readonly request: PoolRequest;
  readonly constraints: Constraints | undefined;
  readonly affinity: AffinityTarget | undefined;
  readonly binding: Binding | undefined;
  /** The router's configuration, with the request's override. */
  readonly config: KvRouterConfig;
  /** The decision will be put into words. */
  readonly explain: boolean;
  /** Of a booked decision that is explained. */
  candidates: Candidate[] | undefined;
}

/** Takes a pool's requests to its policy: to the program in the kernel, or to the components here. */
export class Decider {
  /** What the policy reads. */
  readonly inputs: WorkerInputs;
  readonly #pool: Pool;
  /** Undefined for a program. */
  readonly #run: PolicyRun | undefined;
  readonly #draws: ReturnType<typeof drawsOf>;

  /** Throws `invalid_plugin` for a component that is none. */
  constructor(pool: Pool) {
    this.#pool = pool;
    this.#run = pool.program ? undefined : new PolicyRun(pool.policy, pool.ranks);
    this.inputs = pool.program?.requiredInputs ?? this.#run!.inputs;
    this.#draws = drawsOf(() => {
      // A plugin that kept it would move the generator between decisions.
      if (!pool.kernel.isHeld && !pool.kernel.failed) throw outsideOfCall();
      return pool.kernel.random();
    });
  }

  /** Reads and writes a request. Everything that can be refused is refused here (see writeRequest). */
  ask(request: PoolRequest, flags: number, explain: boolean): Asked {
    const pool = this.#pool;
    const constraints = readConstraints(request, pool.ranks);
    const affinity = affinityOf(request);
    const binding = bindingOf(pool, request, affinity, constraints);
    const keep = explain && pool.program ? RequestFlag.keep : 0;
    const preferred = request.softAffinity && pool.program ? affinity : undefined;
    const config = writeRequest(pool, request, constraints, binding, flags | keep, preferred);
    return { request, constraints, affinity, binding, config, explain, candidates: undefined };
  }

  /** Decides; answers the kernel's status, or `allFiltered`. An explained decision ends with release(). */
  decide({ request, constraints, affinity, binding, config, explain }: Asked): number {
    const { kernel } = this.#pool;
    let status: number;
    if (this.#run) {
      const n = request.tokens.length;
      const context = selectionContext(request, n, kernel.blockSize, config, affinity, binding, this.#draws);
      const hasTaints = constraints !== undefined && constraints.preferred.length > 0 && binding?.slot === undefined;
      status = this.#run.decide(kernel, context, hasTaints, explain);
    } else status = kernel.exports.decide();
    kernel.sync();
    return status;
  }

  /** As decide(), and books it. Its candidates are explained as they were before. */
  decideAndBook(asked: Asked): number {
    if (!asked.explain) return this.decide(asked);
    this.release();
    const status = this.decide(asked);
    if (status < 0) return status;
    asked.candidates = this.candidates(asked);
    const { kernel, program } = this.#pool;
    if (!program) return status;
    const booked = kernel.exports.bookKept();
    kernel.sync();
    return booked;
  }

  /** Lets go of what an explained decision keeps. */
  release(): void {
    const { kernel, program } = this.#pool;
    if (program && !kernel.failed) kernel.exports.releaseColumns();
  }

  /** Why the last decision fell as it did. */
  reason({ binding, config }: Asked): Reason {
    const { kernel, program } = this.#pool;
    const { answer } = kernel;
    if (binding) return binding.by;
    if (answer[Answer.candidates] === 1) return "only_candidate";
    if (answer[Answer.noSignal] === 1) return "no_signal";
    const tied = answer[Answer.tied]!;
    // A program says how it draws; of components it is known by a choice that is not among the lowest.
    if (program ? program.temperature(config) > 0 : tied === 0) return "sampled";
    return tied > 1 ? "tie" : "cost";
  }

  /** The candidates of the last decision, which was an explained one. */
  candidates({ constraints, binding }: Asked): Candidate[] {
    const { program } = this.#pool;
    if (program) return programCandidates(this.#pool, program, constraints, binding);
    return scoredCandidates(this.#pool, this.#run!.explained!);
  }

  /** The last decision as a value; it is over then. */
  explained(asked: Asked, status: number): Explanation {
    try {
      const { constraints, binding } = asked;
      const kept = this.#pool.policy.filters.length > 0 ? new Set(this.#run?.explained?.rows) : undefined;
      return explainDecision(this.#pool, status, constraints, binding, () => this.candidates(asked), kept);
    } finally {
      this.release();
    }
  }
}

const outsideOfCall = () =>
  new WarmrouteError(
    "policy_failed",
    "a component drew a random number outside of its call: keep values, never the context",
  );
