// What is chosen beside the policy file: options and environment variables (spec: plugins.md §2.3).
import { WarmrouteError } from "../core/errors.js";
import type { WorkerRole } from "../core/types.js";

/** Choices of the host, beside those of the policy file. */
export interface ResolveOptions {
  /** The environment, `process.env` as a rule; nothing else is ever read. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** An instance name or `default` for the prefill role. */
  readonly prefillPolicy?: string | undefined;
  /** The same for decode. */
  readonly decodePolicy?: string | undefined;
}

/** The choice for a role, and who made it. */
export interface Override {
  readonly instance: string;
  readonly source: "env" | "option";
  /** The variable or the option. */
  readonly path: string;
  /** Whether it was made for every role at once. */
  readonly isGlobal: boolean;
}

const prefixes = ["WARMROUTE_ROUTER_", "DYN_ROUTER_"];
const allRoles = "WORKER_SELECTION_POLICY";
const ownChoices: Partial<
  Record<WorkerRole, readonly ["prefillPolicy" | "decodePolicy", option: string, variable: string]>
> = {
  prefill: ["prefillPolicy", "--prefill-policy", "PREFILL_POLICY"],
  decode: ["decodePolicy", "--decode-policy", "DECODE_POLICY"],
};

/** What overrides the file for a role: its own option, its own variable, then the variable for all. Throws `unreadable`. */
export function overrideOf(role: WorkerRole, options: ResolveOptions): Override | undefined {
  const own = ownChoices[role];
  if (own) {
    const [key, path, variable] = own;
    const instance = trimmed(options[key], path);
    if (instance !== undefined) return { instance, source: "option", path, isGlobal: false };
    const found = variableOf(variable, options.env);
    if (found) return { instance: found.value, source: "env", path: found.name, isGlobal: false };
  }
  const found = variableOf(allRoles, options.env);
  return found && { instance: found.value, source: "env", path: found.name, isGlobal: true };
}

/** A variable under its own name, else under that of the reference; empty means unset. Throws `unreadable`. */
export function variableOf(name: string, env: ResolveOptions["env"]): { name: string; value: string } | undefined {
  for (const prefix of prefixes) {
    const value = trimmed(env?.[prefix + name], prefix + name);
    if (value !== undefined) return { name: prefix + name, value };
  }
  return undefined;
}

function trimmed(value: unknown, path: string): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "string") throw new WarmrouteError("invalid_type", `${path} must be a string`, { path });
  // Bytes that are no text come as U+FFFD, and lone surrogates have no bytes.
  if (/\uFFFD|\p{Surrogate}/u.test(value))
    throw new WarmrouteError("unreadable", `${path} is not Unicode text`, { path });
  return value.trim() || undefined;
}
