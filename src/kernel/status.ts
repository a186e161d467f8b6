/** Status codes of the kernel's verbs (assembly/status.ts, assembly/select/request.ts). */
export const Status = {
  ok: 0,
  memoryBudget: -1,
  orphan: -2,
  invalidSequence: -3,
  foreignName: -4,
  unknownRank: -5,
  unknownBooking: -6,
  tooManyRanks: -7,
  badRecord: -8,
  noCandidate: -20,
  /** Not the kernel's: a policy's filters kept no candidate. */
  allFiltered: -21,
} as const;

const refusals: Record<number, string> = {
  [Status.memoryBudget]: "memory_budget",
  [Status.orphan]: "orphan",
  [Status.invalidSequence]: "invalid_sequence",
  [Status.foreignName]: "foreign_name",
  [Status.unknownRank]: "unknown_rank",
};

/** Why an event was refused, as a stable word. */
export function eventRefusal(status: number): string {
  return refusals[status] ?? "refused";
}
