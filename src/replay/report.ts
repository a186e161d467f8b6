import { Distribution } from "./distribution.js";
import type { Prompts } from "./prompts.js";
import type { RequestResult } from "./simulate.js";
import type { Trace } from "./trace.js";

/** The numbers of one mode, by the names of spec: scheduling.md §8.5; those that do not apply are absent. */
export type ModeSummary = Record<string, number>;

const ms = (micros: number): number => micros / 1000;

/** Collects what happened in one mode, and writes it down: a line of JSON for each request, and a summary. */
export class Report {
  /** In trace order. */
  readonly lines: string[] = [];
  /** How many requests each worker got. */
  readonly requestsOfWorker: number[];
  /** How often engines preempted a request and admitted it again. */
  readmissions = 0;
  /** Requests that were answered to their end. */
  completed = 0;
  private inputTokens = 0;
  private outputTokens = 0;
  private reusedTokens = 0;
  private firstReusedTokens = 0;
  private endMicros = 0;
  private readonly ttft = new Distribution();
  private readonly ttst = new Distribution();
  private readonly tpot = new Distribution();
  private readonly itl = new Distribution();
  private readonly e2eLatency = new Distribution();

  constructor(
    readonly mode: string,
    private readonly trace: Trace,
    private readonly prompts: Prompts,
    private readonly workers: number,
    private readonly withItl: boolean,
  ) {
    this.requestsOfWorker = new Array<number>(workers).fill(0);
  }

  add(request: number, result: RequestResult): void {
    this.requestsOfWorker[result.placement.worker]!++;
    this.endMicros = Math.max(this.endMicros, result.end);
    if (result.status === "completed") this.measure(request, result);
    this.lines[request] = JSON.stringify(this.record(request, result));
  }

  summary(): ModeSummary {
    const seconds = this.endMicros / 1e6;
    const workerSeconds = this.workers * seconds;
    const summary: ModeSummary = {
      num_requests: this.trace.requests.length,
      completed_requests: this.completed,
      total_input_tokens: this.inputTokens,
      total_output_tokens: this.outputTokens,
      duration_ms: ms(this.endMicros),
      decode_worker_seconds: workerSeconds,
      gpu_hours: workerSeconds / 3600,
    };
    if (this.completed === 0) return summary;
    summary.request_throughput_rps = this.completed / seconds;
    summary.input_throughput_tok_s = this.inputTokens / seconds;
    summary.output_throughput_tok_s = this.outputTokens / seconds;
    summary.total_throughput_tok_s = (this.inputTokens + this.outputTokens) / seconds;
    summary.prefix_cache_reused_ratio = this.reusedTokens / this.inputTokens;
    summary.first_admission_prefix_cache_reused_ratio = this.firstReusedTokens / this.inputTokens;
    write(summary, "ttft_ms", this.ttft.map(ms));
    write(summary, "ttst_ms", this.ttst.map(ms));
    write(summary, "tpot_ms", this.tpot.map(ms));
    write(summary, "itl_ms", this.itl.map(ms));
    write(summary, "e2e_latency_ms", this.e2eLatency.map(ms));
    write(
      summary,
      "output_token_throughput_per_user",
      this.itl.map((micros) => 1e6 / micros),
    );
    return summary;
  }

  private measure(request: number, result: RequestResult): void {
    const first = result.firstToken!;
    this.completed++;
    this.readmissions += result.admissions.length - 1;
    this.inputTokens += this.trace.requests[request]!.inputTokens;
    this.outputTokens += result.gaps.length + 1;
    this.reusedTokens += reused(result);
    this.firstReusedTokens += result.admissions[0]!.reusedTokens;
    this.ttft.add(first - result.arrival);
    this.e2eLatency.add(result.lastToken! - result.arrival);
    if (result.gaps.length === 0) return;
    this.ttst.add(result.gaps[0]!);
    this.tpot.add((result.lastToken! - first) / result.gaps.length);
    for (const gap of result.gaps) this.itl.add(gap);
  }

  /** One line of `requests.jsonl`; the keys of `undefined` values do not appear. */
  private record(request: number, result: RequestResult): Record<string, unknown> {
    const { line, sessionId, turn, inputTokens, outputTokens } = this.trace.requests[request]!;
    const { arrival, firstToken, lastToken, gaps, admissions } = result;
    const admitted = admissions[0];
    const { worker, overlap } = result.placement;
    const overlapTokens = overlap && overlap.selectedBlocks * this.prompts.blockSize;
    return {
      mode: this.mode,
      uuid: `${this.mode}-${line}`,
      session_id: sessionId,
      turn_index: turn,
      terminal_status: result.status,
      arrival_time_ms: ms(arrival),
      dispatched_at_ms: ms(arrival),
      first_admit_ms: admitted && ms(admitted.at),
      terminal_time_ms: ms(result.end),
      ...(firstToken !== undefined && {
        first_token_ms: ms(firstToken),
        last_token_ms: ms(lastToken!),
        ttft_ms: ms(firstToken - arrival),
        e2e_latency_ms: ms(lastToken! - arrival),
        ...gapFields(gaps, this.withItl),
      }),
      input_length: inputTokens,
      requested_output_length: outputTokens,
      output_length: firstToken === undefined ? 0 : gaps.length + 1,
      reused_input_tokens: reused(result),
      decode_worker_idx: worker,
      decode_admit_ms: admitted && ms(admitted.at),
      decode_route_overlap_tokens: overlapTokens,
      admission_count: admissions.length,
      readmission_count: Math.max(0, admissions.length - 1),
      routing_history: [
        {
          pool: "aggregated",
          outcome: "selected",
          queue_entered_at_ms: ms(arrival),
          released_at_ms: ms(arrival),
          queue_wait_ms: 0,
          logical_worker_id: String(worker),
          dp_rank: 0,
          reported_overlap_tokens: overlapTokens,
          selected_overlap_blocks: overlap?.selectedBlocks,
          best_available_overlap_blocks: overlap?.bestBlocks,
          overlap_regret_blocks: overlap && overlap.bestBlocks - overlap.selectedBlocks,
        },
      ],
      admission_history: admissions.map(({ at, reusedTokens }, ordinal) => ({
        admission_ordinal: ordinal,
        pool_admission_ordinal: ordinal,
        pool: "aggregated",
        at_ms: ms(at),
        reused_input_tokens: reusedTokens,
        is_readmission: ordinal > 0,
      })),
    };
  }
}

/**
 * Prompt tokens that the worker did not compute; of several admissions, in the one that saved the most (as in the
 * reference), which for a preempted request counts blocks that it had computed itself.
 */
function reused(result: RequestResult): number {
  return Math.max(0, ...result.admissions.map((admission) => admission.reusedTokens));
}

function gapFields(gaps: readonly number[], all: boolean): Record<string, unknown> {
  const distribution = new Distribution();
  for (const gap of gaps) distribution.add(gap);
  const statistics = distribution.statistics();
  if (statistics === undefined) return {};
  return {
    ttst_ms: ms(gaps[0]!),
    itl_mean_ms: ms(statistics.mean),
    itl_p99_ms: ms(statistics.p99),
    ...(all && { itl_ms: gaps.map(ms) }),
  };
}

/** `mean_ttft_ms`, `min_ttft_ms`, … */
function write(summary: ModeSummary, name: string, distribution: Distribution): void {
  const statistics = distribution.statistics();
  if (statistics === undefined) return;
  for (const [statistic, value] of Object.entries(statistics)) summary[`${statistic}_${name}`] = value;
}
