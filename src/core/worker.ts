import { WarmrouteError } from "./errors.js";
import { describe, parseU32, shortened, workerIdString } from "./ids.js";
import { type EngineKind, type WorkerRecord, workerRoles } from "./types.js";

export const engineKinds = ["auto", "vllm", "sglang", "openai"] as const satisfies readonly EngineKind[];
const MAX_DP = 16384;

type Field = (value: unknown, path: string) => unknown;

const text: Field = (value, path) => {
  if (typeof value === "string" && value.length > 0) return value;
  throw bad(path, "a non-empty string", value);
};
const oneOf =
  (names: readonly string[]): Field =>
  (value, path) => {
    if (typeof value === "string" && names.includes(value)) return value;
    throw bad(path, `one of ${names.join(", ")}`, value);
  };
const positive: Field = (value, path) => {
  if (typeof value === "number" && Number.isSafeInteger(value) && value > 0) return value;
  throw bad(path, "a positive whole number", value);
};
const rank: Field = (value, path) => parseU32(value, path, "invalid_worker");
const names: Field = (value, path) => {
  if (!Array.isArray(value)) throw bad(path, "a list of strings", value);
  return Object.freeze(value.map((name, i) => text(name, `${path}[${i}]`)));
};
const labels: Field = (value, path) => {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  if (isObject && Object.values(value).every((v) => typeof v === "string")) return Object.freeze({ ...value });
  throw bad(path, "an object of strings", value);
};
const baseUrl: Field = (value, path) => {
  const fault = urlFault(text(value, path) as string);
  if (fault === undefined) return value;
  throw new WarmrouteError("invalid_worker", `${path} ${fault}`, { path });
};

/**
 * What is wrong with a worker's base URL: requests bring the rest of their path, their query and their credentials
 * along. Quotes nothing of it, as it may hold a password.
 */
export function urlFault(url: string): string | undefined {
  if (!/^https?:\/\/\S+$/i.test(url) || !URL.canParse(url)) return "must begin with http:// or https://, and be a URL";
  const { username, password } = new URL(url);
  if (username !== "" || password !== "") {
    return "must not hold credentials; the authorization header of each request is passed on";
  }
  return /[?#]/.test(url) ? "must not have a query (?) or a fragment (#)" : undefined;
}

/** Every field of a worker record, with how it is read. */
const fields: Record<keyof WorkerRecord, Field> = {
  workerId: (value, path) => workerIdString(value, path),
  url: baseUrl,
  role: oneOf(workerRoles),
  routingGroup: text,
  engine: oneOf(engineKinds),
  dpStart: rank,
  dpSize: positive,
  totalKvBlocks: positive,
  maxNumBatchedTokens: positive,
  events: text,
  replay: text,
  labels,
  taints: names,
  loras: names,
  incarnation: text,
};

function bad(path: string, wanted: string, value: unknown): WarmrouteError {
  return new WarmrouteError("invalid_worker", `${path} must be ${wanted}, not ${describe(value)}`, { path });
}

/** Reads a worker record and fills in the defaults; nobody can change it then. Throws `invalid_worker` naming the field. */
export function parseWorker(input: unknown, path = "worker"): WorkerRecord {
  if (typeof input !== "object" || input === null || Array.isArray(input)) throw bad(path, "an object", input);
  const record: Record<string, unknown> = {
    role: "aggregated",
    routingGroup: "default",
    engine: "auto",
    dpStart: 0,
    dpSize: 1,
    labels: Object.freeze({}),
    taints: Object.freeze([]),
  };
  for (const [key, value] of Object.entries(input)) {
    if (!Object.hasOwn(fields, key)) {
      throw new WarmrouteError("invalid_worker", `${path} has an unknown field: ${shortened(key)}`, {
        path: `${path}.${key}`,
      });
    }
    if (value !== undefined) record[key] = fields[key as keyof WorkerRecord](value, `${path}.${key}`);
  }
  if (record.workerId === undefined) throw bad(`${path}.workerId`, "given", undefined);
  const worker = record as unknown as WorkerRecord;
  if (worker.dpSize > MAX_DP || worker.dpStart + worker.dpSize > 2 ** 32) {
    throw bad(`${path}.dpSize`, `at most ${MAX_DP}, ending below 2^32`, worker.dpSize);
  }
  return Object.freeze(worker);
}
