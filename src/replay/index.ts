export { vllmDefaults } from "./engine.js";
export { type GeneratorOptions, generateTrace, MOST_SESSION_TOKENS } from "./generate.js";
export { Prompts } from "./prompts.js";
export { modes, type ReplaySetup, replayMode, summaryDocument } from "./replay.js";
export type { ModeSummary, Report } from "./report.js";
export { notes, renderTable } from "./table.js";
export { isLongInteger, readTrace, TRACE_BLOCK, type Trace, type TraceRequest } from "./trace.js";
export { counted } from "./words.js";
