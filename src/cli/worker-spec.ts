import { WarmrouteError } from "../core/errors.js";
import { workerIdString } from "../core/ids.js";
import type { EngineKind, WorkerInput, WorkerRole } from "../core/types.js";
import { usageError } from "./options.js";

const roles: readonly WorkerRole[] = ["aggregated", "prefill", "decode", "encode"];
const engines: readonly EngineKind[] = ["auto", "vllm", "sglang", "openai"];

/** Every key of a worker SPEC, and what it sets. */
const keys: Record<string, (value: string, worker: WorkerInput) => void> = {
  id: (value, worker) => {
    worker.workerId = workerIdString(value, "id", "invalid_usage");
  },
  role: (value, worker) => {
    worker.role = oneOf(roles, value);
  },
  engine: (value, worker) => {
    worker.engine = oneOf(engines, value);
  },
  dp: (value, worker) => {
    if (!/^[1-9]\d{0,4}$/.test(value)) throw new Error("must be a whole number of ranks, at least 1");
    worker.dpSize = Number(value);
  },
};

/**
 * Reads `URL` or `URL,key=value,…`. Without `id` workers are numbered from 1 in the order given, past the ids taken.
 * Throws `invalid_usage` that names the SPEC and the key.
 */
export function parseWorkerSpecs(specs: readonly string[]): WorkerInput[] {
  const parsed = specs.map(parseSpec);
  const taken = new Set(parsed.map(({ workerId }) => workerId).filter((id) => id !== undefined));
  let next = 1;
  const workers = parsed.map((worker) => {
    if (worker.workerId !== undefined) return worker as WorkerInput;
    while (taken.has(String(next))) next++;
    return { ...worker, workerId: String(next++) };
  });
  const ids = new Set<unknown>();
  for (const { workerId } of workers) {
    if (ids.has(workerId)) throw usage(`two workers have the id ${workerId}`);
    ids.add(workerId);
  }
  return workers;
}

function parseSpec(spec: string): Partial<WorkerInput> {
  const [url = "", ...settings] = spec.split(",");
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw usage(`--worker ${spec}: must begin with an http:// or https:// URL`);
  }
  const worker: Partial<WorkerInput> = { url };
  for (const setting of settings) {
    const [key = "", value = ""] = split(setting);
    const set = Object.hasOwn(keys, key) ? keys[key] : undefined;
    if (!set) throw usage(`--worker ${spec}: unknown key ${key}; known are ${Object.keys(keys).join(", ")}`);
    try {
      set(value, worker as WorkerInput);
    } catch (error) {
      if (error instanceof WarmrouteError) throw usage(`--worker ${spec}: ${error.message}`);
      throw usage(`--worker ${spec}: ${key} ${(error as Error).message}`);
    }
  }
  return worker;
}

function split(setting: string): [string, string] {
  const at = setting.indexOf("=");
  return at < 0 ? [setting, ""] : [setting.slice(0, at), setting.slice(at + 1)];
}

function oneOf<T extends string>(allowed: readonly T[], value: string): T {
  const found = allowed.find((one) => one === value);
  if (found === undefined) throw new Error(`must be one of ${allowed.join(", ")}`);
  return found;
}

const usage = (message: string) => usageError("--worker", message);
