import type { AttributeSource } from "../router/contract.js";
import { usageError } from "./options.js";

const option = "--attribute";
const most = 16;

/**
 * Reads `NAME=header:HEADER`, once for each attribute that plugins shall see. Throws `invalid_usage`; undefined without
 * any.
 */
export function attributesOf(
  specs: readonly string[] | undefined,
): ((source: AttributeSource) => Record<string, string | undefined>) | undefined {
  if (!specs) return undefined;
  const headers = new Map<string, string>();
  for (const spec of specs) {
    const [, name, header] = /^([\w.-]{1,128})=header:([!#$%&'*+.^_`|~\w-]+)$/.exec(spec) ?? [];
    if (name === undefined || header === undefined) {
      throw usageError(option, `${option} ${spec}: write NAME=header:HEADER, such as tenant=header:x-tenant`);
    }
    if (headers.has(name)) throw usageError(option, `${option}: the attribute ${name} is given twice`);
    headers.set(name, header);
  }
  if (headers.size > most) throw usageError(option, `${option} can be given at most ${most} times`);
  const wanted = [...headers];
  return (source) =>
    Object.fromEntries(wanted.map(([name, header]) => [name, source.headers.get(header) ?? undefined]));
}
