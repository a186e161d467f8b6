import { WarmrouteError } from "../core/errors.js";
import { workerIdString } from "../core/ids.js";
import { type WorkerInput, workerRoles } from "../core/types.js";
import { engineKinds, urlFault } from "../core/worker.js";
import { joinUrl } from "../dispatch/index.js";
import { usageError } from "./options.js";

/** Every key of a worker SPEC, and what it sets. */
const keys: Record<string, (value: string, worker: WorkerInput) => void> = {
  id: (value, worker) => {
    worker.workerId = workerIdString(value, "id", "invalid_usage");
  },
  role: (value, worker) => {
    worker.role = oneOf(workerRoles, value);
  },
  engine: (value, worker) => {
    worker.engine = oneOf(engineKinds, value);
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
  const seen = new Set<unknown>();
  const once = (what: string, value: unknown) => {
    if (seen.has(`${what} ${value}`)) throw usage(`two workers have the ${what} ${value}`);
    seen.add(`${what} ${value}`);
  };
  for (const { workerId, url } of workers) {
    once("id", workerId);
    once("URL", joinUrl(new URL(url!).href, ""));
  }
  return workers;
}

function parseSpec(spec: string): Partial<WorkerInput> {
  const [url = "", ...settings] = spec.split(",");
  // Messages end up in logs: a password must not.
  const wrong = (what: string) => usage(`--worker ${spec.replace(/[^/]*@/g, "…@")}: ${what}`);
  const fault = urlFault(url);
  if (fault !== undefined) throw wrong(`the URL ${fault}`);
  const worker: Partial<WorkerInput> = { url };
  const given = new Set<string>();
  for (const setting of settings) {
    if (setting === "") throw wrong("nothing follows a comma");
    const [key = "", value = ""] = split(setting);
    const set = setterOf(key);
    if (!set) throw wrong(`unknown key ${key}; known are ${Object.keys(keys).join(", ")}, label.NAME`);
    if (given.has(key)) throw wrong(`${key} is given twice`);
    given.add(key);
    try {
      set(value, worker as WorkerInput);
    } catch (error) {
      throw wrong(error instanceof WarmrouteError ? error.message : `${key} ${(error as Error).message}`);
    }
  }
  return worker;
}

/** What a key sets; `label.NAME` sets a label. */
function setterOf(key: string): ((value: string, worker: WorkerInput) => void) | undefined {
  const label = /^label\.(.+)$/.exec(key)?.[1];
  if (label === undefined) return Object.hasOwn(keys, key) ? keys[key] : undefined;
  return (value, worker) => {
    if (value === "") throw new Error("needs a value");
    worker.labels = { ...worker.labels, [label]: value };
  };
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
