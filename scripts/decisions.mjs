// Compares the decisions of this tree with those of another commit: builds both, replays the same trace with each, and
// compares requests.jsonl byte for byte. Exits 1 at the first difference and shows it.
//   npm run decisions -- --base <git ref> [--trace FILE] [-- replay options]
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));
const { values } = parseArgs({
  options: { base: { type: "string" }, trace: { type: "string" }, workers: { type: "string", default: "8" } },
});
if (!values.base) {
  console.error("which commit to compare with? npm run decisions -- --base <git ref>");
  process.exit(2);
}
const mooncake = join(root, "../shared/traces/mooncake-conversation.jsonl");
const sample = join(root, "examples/sample-trace.jsonl");
const trace = values.trace ?? (existsSync(mooncake) ? mooncake : sample);

const run = (cwd, program, ...args) => execFileSync(program, args, { cwd, stdio: ["ignore", "ignore", "inherit"] });

/** Builds a tree and answers the lines that it decides for the trace. */
function decisionsOf(tree, out) {
  run(tree, "npm", "run", "--silent", "build");
  const options = ["--workers", values.workers, "--mode", "kv", "--seed", "1", "--out", out];
  run(tree, process.execPath, "dist/cli.js", "replay", trace, ...options);
  return readFileSync(join(out, "requests.jsonl"), "utf8").split("\n");
}

const work = mkdtempSync(join(tmpdir(), "warmroute-decisions-"));
const base = join(work, "base");
try {
  run(root, "git", "worktree", "add", "--detach", base, values.base);
  symlinkSync(join(root, "node_modules"), join(base, "node_modules"));
  const before = decisionsOf(base, join(work, "before"));
  const after = decisionsOf(root, join(work, "after"));
  const at = after.findIndex((line, i) => line !== before[i]);
  if (at < 0 && after.length === before.length) {
    console.log(`${after.length - 1} decisions, byte for byte as at ${values.base}`);
  } else {
    console.log(`decision ${at + 1} differs from ${values.base}:\n- ${before[at]}\n+ ${after[at]}`);
    process.exitCode = 1;
  }
} finally {
  if (existsSync(base)) run(root, "git", "worktree", "remove", "--force", base);
  rmSync(work, { recursive: true, force: true });
}
