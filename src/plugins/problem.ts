// What is wrong with a policy file: one form for the library's errors and for `warmroute check`.
import { type ErrorCode, WarmrouteError } from "../core/errors.js";

/** One mistake, and where it stands. Positions are 1-based; absent for what stands in no file. */
export interface PolicyProblem {
  readonly code: ErrorCode;
  /** `a.b[0]`, `models["org/x"]`; or the variable or option, for an override. */
  readonly path: string;
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
  /** The name that was most likely meant. */
  readonly suggestion?: string;
  /** The type whose parameters are wrong. */
  readonly provider?: string;
}

/** `models`, `org/x`, 0 → `models["org/x"][0]`. */
export function pathText(path: readonly PropertyKey[]): string {
  let text = "";
  for (const key of path) {
    if (typeof key === "number") text += `[${key}]`;
    else if (/^[\w$]+$/.test(String(key))) text += text === "" ? String(key) : `.${String(key)}`;
    else text += `[${JSON.stringify(String(key))}]`;
  }
  return text;
}

/** By line, then column; what stands in no file comes first. */
export const inFileOrder = (problems: readonly PolicyProblem[]): PolicyProblem[] =>
  [...problems].sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));

/** What an error says beyond its problems. */
interface More {
  readonly file?: string | undefined;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/** One error for all problems: the code and place of the first in the file, all of them in `details.errors`. */
export function problemsError(problems: readonly PolicyProblem[], { file, details, cause }: More = {}): WarmrouteError {
  const errors = inFileOrder(problems);
  const { code, path, line, column, message, suggestion, provider } = errors[0]!;
  const place = line === undefined ? "" : `${file === undefined ? "" : `${file}:`}${line}:${column}: `;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : "";
  return new WarmrouteError(code, `${place}${message}${more}`, {
    path,
    ...(line === undefined ? {} : { line }),
    ...(column === undefined ? {} : { column }),
    ...(cause === undefined ? {} : { cause }),
    details: {
      errors,
      ...(file === undefined ? {} : { file }),
      ...(suggestion === undefined ? {} : { suggestion }),
      ...(provider === undefined ? {} : { provider }),
      ...details,
    },
  });
}

/** The problems that an error stands for. */
export function problemsOf(error: WarmrouteError): readonly PolicyProblem[] {
  const { errors, suggestion, provider } = error.details as {
    errors?: readonly PolicyProblem[];
    suggestion?: string;
    provider?: string;
  };
  if (errors) return errors;
  const { code, path = "", line, column, message } = error;
  return [
    {
      code,
      path,
      ...(line === undefined ? {} : { line }),
      ...(column === undefined ? {} : { column }),
      message,
      ...(suggestion === undefined ? {} : { suggestion }),
      ...(provider === undefined ? {} : { provider }),
    },
  ];
}
