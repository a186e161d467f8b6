import { Answer, CandidateColumn as Of } from "../../kernel/abi.js";
import type { Kernel } from "../../kernel/kernel.js";
import {
  type CacheColumns,
  type CandidateView,
  type LatencyColumns,
  type LoadColumns,
  type NetworkColumns,
  type ScoredView,
  WorkerInputs,
} from "../../plugins/worker-selection/components.js";
import type { PoolRank, PoolRanks } from "../ranks.js";

/** All columns of the candidates, as views over linear memory. */
interface Columns {
  readonly slot: Uint32Array;
  readonly dpRank: Uint32Array;
  readonly cache: CacheColumns;
  readonly load: LoadColumns;
  readonly multiplier: Float64Array | undefined;
  readonly latency: LatencyColumns;
  readonly network: NetworkColumns;
}

/** The candidates as one component sees them: the groups that it asked for. */
class Rows implements CandidateView {
  readonly length: number;
  readonly slot: Uint32Array;
  readonly dpRank: Uint32Array;
  declare readonly cache?: CacheColumns;
  declare readonly load?: LoadColumns;
  declare readonly preferredTaintMultiplier?: Float64Array;
  declare readonly latency?: LatencyColumns;
  declare readonly network?: NetworkColumns;
  readonly #ranks: PoolRanks;

  constructor(ranks: PoolRanks, columns: Columns, inputs: WorkerInputs) {
    this.#ranks = ranks;
    this.length = columns.slot.length;
    this.slot = columns.slot;
    this.dpRank = columns.dpRank;
    if (inputs & WorkerInputs.CACHE) this.cache = columns.cache;
    if (inputs & WorkerInputs.LOAD) this.load = columns.load;
    if (inputs & WorkerInputs.PREFERRED_TAINT && columns.multiplier) this.preferredTaintMultiplier = columns.multiplier;
    if (inputs & WorkerInputs.LATENCY) this.latency = columns.latency;
    if (inputs & WorkerInputs.NETWORK) this.network = columns.network;
  }

  /** Bound, as components may take it off the view. */
  readonly workerId = (row: number): string => this.#rank(row).workerId;

  readonly label = (row: number, key: string): string | undefined => {
    const { labels } = this.#rank(row).record;
    return Object.hasOwn(labels, key) ? labels[key] : undefined;
  };

  #rank(row: number): PoolRank {
    const slot = this.slot[row];
    if (slot === undefined) throw new RangeError(`there is no row ${row} among ${this.length}`);
    return this.#ranks.at(slot);
  }
}

class ScoredRows extends Rows implements ScoredView {
  readonly costs: Float64Array;

  constructor(ranks: PoolRanks, columns: Columns, inputs: WorkerInputs, costs: Float64Array) {
    super(ranks, columns, inputs);
    this.costs = costs;
  }
}

/**
 * The views of some components over the candidates of one request. They are made anew only when the candidates are
 * elsewhere or another number than before.
 */
export class CandidateViews {
  /** Of each component, in the order of `inputs`. */
  rows: readonly CandidateView[] = [];
  /** What the last one sees, with the totals. */
  scored!: ScoredView;
  /** What all scorers gave each candidate, and what one gives. */
  totals = new Float64Array(0);
  scratch = new Float64Array(0);
  /** The kernel's row of each candidate. */
  places = new Uint32Array(0);
  readonly #ranks: PoolRanks;
  readonly #inputs: readonly WorkerInputs[];
  #columns: Columns | undefined;
  #region = 0;
  #hasTierMatches = false;

  constructor(ranks: PoolRanks, inputs: readonly WorkerInputs[]) {
    this.#ranks = ranks;
    this.#inputs = inputs;
  }

  /** Shows `n` candidates; `hasMultiplier` says whether taint multipliers were asked of this request. */
  show(kernel: Kernel, n: number, hasMultiplier: boolean): void {
    const { answer } = kernel;
    const columns = this.#columns;
    // When memory has grown, the old views have length 0.
    const isSame =
      columns !== undefined &&
      this.#region === answer[Answer.region] &&
      columns.slot.length === n &&
      (columns.multiplier !== undefined) === hasMultiplier;
    if (!isSame) this.#make(kernel, n, hasMultiplier);
    this.#hasTierMatches = answer[Answer.hasTierMatches] === 1;
  }

  #make(kernel: Kernel, n: number, hasMultiplier: boolean): void {
    const at = (which: number) => kernel.exports.candidateColumn(which);
    const f64 = (which: number) => kernel.f64(at(which), n);
    const unknown = f64(Of.unknown);
    const isMatched = () => this.#hasTierMatches;
    const columns: Columns = {
      slot: kernel.u32(at(Of.slot), n),
      dpRank: kernel.u32(at(Of.rank), n),
      cache: Object.freeze({
        deviceOverlapBlocks: f64(Of.device),
        hostOverlapBlocks: f64(Of.host),
        diskOverlapBlocks: f64(Of.disk),
        sharedBeyondDeviceBlocks: f64(Of.shared),
        estimatedBlocks: f64(Of.estimatedBlocks),
        estimatedTokens: f64(Of.estimatedTokens),
        get hasTierMatches() {
          return isMatched();
        },
      }),
      load: Object.freeze({
        isAvailable: kernel.bytes(at(Of.known), n),
        activePrefillTokens: f64(Of.prefill),
        decodeCostBlocks: f64(Of.decodeCost),
        activeRequests: f64(Of.requests),
      }),
      multiplier: hasMultiplier ? f64(Of.multiplier) : undefined,
      latency: Object.freeze({ ttftMsMean: unknown, itlMsMean: unknown, errorRate: unknown, samples: unknown }),
      network: Object.freeze({ rttMs: unknown, sameRegion: kernel.bytes(at(Of.near), n) }),
    };
    this.totals = f64(Of.total);
    this.scratch = f64(Of.scratch);
    this.places = kernel.u32(at(Of.row), n);
    this.rows = this.#inputs.map((inputs) => Object.freeze(new Rows(this.#ranks, columns, inputs)));
    this.scored = Object.freeze(new ScoredRows(this.#ranks, columns, this.#inputs.at(-1)!, this.totals));
    this.#columns = columns;
    this.#region = kernel.answer[Answer.region]!;
  }
}
