import type { ReplaySetup } from "./replay.js";
import type { ModeSummary, Report } from "./report.js";
import type { Trace } from "./trace.js";

const grouped = (value: number): string => Math.round(value).toLocaleString("en-US");
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
  ["duration", of("duration_ms", duration)],
  ["requests a worker", (_, { requestsOfWorker: n }) => `${grouped(Math.min(...n))} – ${grouped(Math.max(...n))}`],
];

/** How many lines of a trace were left out, and why the first was. */
export function skippedLines({ skipped }: Trace): string {
  return `${grouped(skipped.length)} bad line${skipped.length === 1 ? "" : "s"} skipped, the first: ${skipped[0]?.reason}`;
}

/** What was replayed, and a column of results for each mode. */
export function renderTable(name: string, setup: ReplaySetup, reports: readonly Report[]): string {
  const { trace, prompts, workers, blocks } = setup;
  const ceiling = percent(prompts.reusableTokens / prompts.inputTokens);
  const fleet = `${grouped(workers)} worker${workers === 1 ? "" : "s"} of ${grouped(blocks)} blocks of ${prompts.blockSize} tokens`;
  const head = [
    `${name}: ${grouped(trace.requests.length)} requests, ${grouped(prompts.inputTokens)} prompt tokens, on ${fleet}`,
    `${ceiling} of the tokens repeat the beginning of an earlier prompt: no router can reuse more`,
  ];
  if (trace.skipped.length > 0) head.push(skippedLines(trace));

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
