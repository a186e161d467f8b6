import { checkFields, fieldsOf } from "./fields.js";
import { parseU32, workerIdString } from "./ids.js";
import type { WorkerRankInput } from "./types.js";

const rankFields = fieldsOf<WorkerRankInput>({ workerId: "any", dpRank: "any" });

/** Reads a worker, or one of its ranks. Throws `invalid_request` naming the field. */
export function readRank(input: unknown, path: string): { workerId: string; dpRank: number | undefined } {
  checkFields(input, rankFields, path, "invalid_request", `${path}.`);
  const { workerId, dpRank } = input as WorkerRankInput;
  return {
    workerId: workerIdString(workerId, `${path}.workerId`, "invalid_request"),
    dpRank: dpRank === undefined ? undefined : parseU32(dpRank, `${path}.dpRank`),
  };
}
