import { CommanderError } from "commander";
import { type ErrorCode, WarmrouteError } from "../core/errors.js";
import type { PolicyProblem } from "../plugins/problem.js";
import { oneLine, problemLine } from "./text.js";

export const BAD_INPUT = 1;
export const BAD_USAGE = 2;

/** Help for people at a terminal, where that of the library speaks of code. */
const terminalHelp: Partial<Record<ErrorCode, string>> = {
  invalid_tokens: "Pass a JSON array of token ids: integers from 0 to 4294967295.",
  too_many_ranks: "Give at most 16384 ranks.",
  memory_budget: "Give a smaller input.",
  kernel_failed: "The kernel trapped: please report it.",
};

/**
 * Writes an error to stderr, as one line or as one JSON document, and answers the exit code.
 * What is no error of ours is thrown again.
 */
export function report(error: unknown, json: boolean): number {
  const known = error instanceof CommanderError ? fromCommander(error) : error;
  if (!(known instanceof WarmrouteError)) throw error;
  const { code, path, message } = known;
  const { suggestion } = known.details;
  if (json) {
    const document = { code, ...(path === undefined ? {} : { path }), message, ...(suggestion ? { suggestion } : {}) };
    process.stderr.write(`${JSON.stringify({ error: document })}\n`);
  } else {
    const hint = suggestion ? ` Did you mean ${suggestion}?` : "";
    const help = known.details.help ?? terminalHelp[code] ?? known.help;
    process.stderr.write(`error: ${code}: ${oneLine(message).replace(/\.$/, "")}.${hint} ${help}\n`);
    const [, ...others] = isWithProblems(known.details) ? known.details.errors : [];
    for (const problem of others) {
      process.stderr.write(`   ${problemLine(`${problem.line}:${problem.column}`, problem)}\n`);
    }
  }
  return code === "invalid_usage" ? BAD_USAGE : BAD_INPUT;
}

/** An error of a policy file has all that is wrong there. */
const isWithProblems = (details: Record<string, unknown>): details is { errors: PolicyProblem[] } =>
  Array.isArray(details.errors);

/** Commander writes its suggestion into the message, on a line of its own. */
function fromCommander({ code, message }: CommanderError): WarmrouteError {
  if (code === "commander.help") return new WarmrouteError("invalid_usage", "no command is given");
  const text = message.replace(/^error: /, "");
  const suggestion = /\s*\(Did you mean (?:one of )?(.+)\?\)/.exec(text);
  const option = /'(--?[\w-]+)/.exec(text)?.[1];
  return new WarmrouteError("invalid_usage", oneLine(text.replace(suggestion?.[0] ?? "", "")), {
    ...(option === undefined ? {} : { path: option }),
    details: suggestion ? { suggestion: suggestion[1]!.replaceAll(", ", " or ") } : {},
  });
}
