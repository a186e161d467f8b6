// `warmroute bench`: measures the rows of the table and prints them.
import { closest } from "../src/core/closest.js";
import { machine } from "./locate.js";
import { heading, line } from "./report.js";
import { bytesSuite } from "./rows/bytes.js";
import { churnSuite } from "./rows/churn.js";
import { hashSuite } from "./rows/hash.js";
import { loadSuite } from "./rows/load.js";
import { lookupSuites } from "./rows/lookup.js";
import { lookupSelfSuites } from "./rows/lookup-self.js";
import { pluginsSuite } from "./rows/plugins.js";
import { queueSuite } from "./rows/queue.js";
import { requestSuite } from "./rows/request.js";
import { selectSuite } from "./rows/select.js";
import { sizeSuite } from "./rows/size.js";
import { storeSuite } from "./rows/store.js";
import { runSuites, type Suite } from "./rows.js";

export interface BenchOptions {
  /** Names of the rows to run; unknown ones are left out. All rows unless given. */
  only?: readonly string[];
  json?: boolean;
  /** Few rounds on small data: checks the answers, and its figures mean little. */
  quick?: boolean;
}

const suites: readonly Suite[] = [
  sizeSuite,
  hashSuite,
  ...lookupSuites,
  ...lookupSelfSuites,
  storeSuite,
  bytesSuite,
  churnSuite,
  selectSuite,
  requestSuite,
  loadSuite,
  queueSuite,
  pluginsSuite,
];

/**
 * Runs the bench and writes its table or its JSON; the exit code, 0 unless a row has an error. Names that it does not
 * know go to `warn`.
 */
export async function runBench(
  options: BenchOptions,
  write: (text: string) => void,
  warn: (text: string) => void = () => {},
): Promise<number> {
  const only = options.only && new Set(options.only);
  const known = suites.flatMap(({ rows }) => rows.map(({ name }) => name));
  for (const name of only ?? []) {
    if (known.includes(name)) continue;
    const meant = closest(name, known);
    warn(`unknown row ${name} is left out${meant === undefined ? "" : `; did you mean ${meant}?`}\n`);
  }
  const wants = (name: string) => only?.has(name) ?? true;
  if (!options.json) write(`${heading}\n`);
  const results = await runSuites(suites, wants, options.quick ?? false, (result) => {
    if (!options.json) write(`${line(result)}\n`);
  });
  if (options.json) write(`${JSON.stringify({ machine: machine(), results }, null, 2)}\n`);
  return results.some((result) => result.error !== undefined) ? 1 : 0;
}
