export { closest } from "./closest.js";
export { vllmDefaults } from "./engine.js";
export { type GeneratorOptions, generateTrace } from "./generate.js";
export { Prompts } from "./prompts.js";
export { modes, type ReplaySetup, replayMode, summaryDocument } from "./replay.js";
export type { ModeSummary, Report } from "./report.js";
export { renderTable, skippedLines } from "./table.js";
export { readTrace, TRACE_BLOCK, type Trace, type TraceRequest } from "./trace.js";
