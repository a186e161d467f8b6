import { blocksNeeded } from "./engine.js";
import type { ReplaySetup } from "./replay.js";
import type { ModeSummary, Report } from "./report.js";
import { counted, grouped } from "./words.js";

const percent = (ratio: number): string => `${(100 * ratio).toFixed(1)} %`;

/** Milliseconds for reading: three digits are enough to compare. */
function duration(ms: number): string {
  if (ms >= 60_000) return `${(ms / 60_000).toFixed(1)} min`;
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  return `${ms.toFixed(1)} ms`;
}

type Row = [label: string, value: (summary: ModeSummary, report: Report) => string | undefined];

const of =
  (key: string, show: (value: number) => string) =>
  (summary: ModeSummary): string | undefined =>
    summary[key] === undefined ? undefined : show(summary[key]);

const rows: Row[] = [
  ["completed", of("completed_requests", grouped)],
  ["refused", ({ num_requests: all, completed_requests: done }) => (all === done ? undefined : grouped(all! - done!))],
  ["preempted", (_, report) => (report.readmissions === 0 ? undefined : grouped(report.readmissions))],
  // Of first admissions: what a preempted request finds again is its own, and saves nothing that was not lost before.
  ["prompt reused", of("first_admission_prefix_cache_reused_ratio", percent)],
  ["first token  mean", of("mean_ttft_ms", duration)],
  ["             median", of("median_ttft_ms", duration)],
  ["             p99", of("p99_ttft_ms", duration)],
  ["token gap    mean", of("mean_itl_ms", duration)],
  ["             p99", of("p99_itl_ms", duration)],
  ["answer       median", of("median_e2e_latency_ms", duration)],
  ["             p99", of("p99_e2e_latency_ms", duration)],
  ["output tokens/s", of("output_throughput_tok_s", grouped)],
  // Refusals alone take the time of the trace, which says nothing of the router.
  ["duration", (summary) => (summary.completed_requests === 0 ? undefined : of("duration_ms", duration)(summary))],
  ["requests a worker", (_, { requestsOfWorker: n }) => `${grouped(Math.min(...n))} – ${grouped(Math.max(...n))}`],
];

/** What a reader of the results must know of the trace: what was left out of it, and requests too large to run. */
export function notes({ trace, prompts, blocks }: ReplaySetup): string[] {
  const { skipped, cut, surplus, requests } = trace;
  const found: string[] = [];
  if (skipped.length > 0)
    found.push(`${counted(skipped.length, "bad line")} skipped, the first: ${skipped[0]!.reason}`);
  if (cut.count > 0) {
    found.push(
      `input_length cut to what the hash_ids stand for on ${counted(cut.count, "line")}, the first: line ${cut.firstLine}`,
    );
  }
  if (surplus.count > 0) {
    found.push(
      `hash_ids beyond the input_length not used on ${counted(surplus.count, "line")}, the first: line ${surplus.firstLine}`,
    );
  }
  const needs = requests.map((request) => blocksNeeded(request, prompts.blockSize)).filter((need) => need > blocks);
  if (needs.length > 0) {
    const all = needs.length === requests.length;
    const who = all ? "every request" : counted(needs.length, "request");
    const most = counted(
      needs.reduce((a, b) => Math.max(a, b)),
      "block",
    );
    found.push(
      `refused: ${who}, as prompt and answer need up to ${most}, and a worker has ${grouped(blocks)} (--blocks)${all ? ": nothing ran" : ""}`,
    );
  }
  return found;
}

/** What was replayed, and a column of results for each mode. */
export function renderTable(name: string, setup: ReplaySetup, reports: readonly Report[]): string {
  const { trace, prompts, workers, blocks } = setup;
  const ceiling = percent(prompts.reusableTokens / prompts.inputTokens);
  const fleet = `${counted(workers, "worker")} of ${counted(blocks, "block")} of ${counted(prompts.blockSize, "token")}`;
  const head = [
    `${name}: ${counted(trace.requests.length, "request")}, ${counted(prompts.inputTokens, "prompt token")}, on ${fleet}`,
    `${ceiling} of the tokens repeat the beginning of an earlier prompt: no router can reuse more`,
    ...notes(setup),
  ];

  const summaries = reports.map((report) => report.summary());
  const filled = rows.map(([label, value]) => [label, ...reports.map((report, i) => value(summaries[i]!, report))]);
  const cells = [["", ...reports.map((report) => report.mode)]];
  for (const [label, ...values] of filled) {
    if (values.some((value) => value !== undefined)) cells.push([label!, ...values.map((value) => value ?? "–")]);
  }
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  const lines = cells.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
      .join("  ")
      .trimEnd(),
  );
  return `${[...head, "", ...lines].join("\n")}\n`;
}
