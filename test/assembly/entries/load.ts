export * from "../../../assembly/load/bookings";
export { bookingPrefillDuration, prefillClock } from "../../../assembly/load/prefills";
export { clearActive, projectActive } from "../../../assembly/load/prompts";
export * from "../../../assembly/load/ranks";
export { bookingGeneration } from "../../../assembly/load/records";
export { runCount } from "../../../assembly/load/runs";
export { arenaInit, arenaInUse, give, take } from "../../../assembly/memory/arena";
export { extentsInit, extentWords } from "../../../assembly/memory/extents";
export { randomNext, randomSeed } from "../../../assembly/select/random";
export {
  exportLoadBegin,
  exportLoadNeeds,
  exportLoadNext,
  importLoadRecord,
} from "../../../assembly/snapshot/load-part";
