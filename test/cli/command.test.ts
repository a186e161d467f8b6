// The built command as a process: what it prints where, and its exit code.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const cli = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));
let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "warmroute-command-"));
  writeFileSync(join(directory, "tokens.json"), "[1,2,3,4]");
  writeFileSync(join(directory, "latin1.json"), Uint8Array.of(0x22, 0xe9, 0x22));
  writeFileSync(
    join(directory, "scenario.json"),
    JSON.stringify({ block_size: 16, request: { input_tokens: 160 }, workers: [{ worker_id: "1" }] }),
  );
  writeFileSync(join(directory, "trace.jsonl"), `${JSON.stringify({ output_length: 2, hash_ids: [1] })}\n`);
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function warmroute(args: readonly string[], input = "") {
  const { status, stdout, stderr } = spawnSync(process.execPath, [cli, ...args], {
    cwd: directory,
    input,
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

const failure = (args: readonly string[], input = "") => {
  const { status, stdout, stderr } = warmroute(args, input);
  expect(stdout).toBe("");
  expect(stderr).toMatch(/^.*\n$/);
  return { status, stderr };
};
const jsonFailure = ([command, ...args]: readonly string[], input = "") => {
  const { status, stderr } = failure([command!, "--json", ...args], input);
  return { status, error: JSON.parse(stderr).error };
};

describe("standard output on a full disk", () => {
  /** A limit on the size of files is a disk that is full at once. */
  const onFullDisk = (args: readonly string[]) =>
    spawnSync("bash", ["-c", 'ulimit -f 0; exec "$0" "$@" > full', process.execPath, cli, ...args], {
      cwd: directory,
      encoding: "utf8",
    });

  test.each([
    [["--help"]],
    [["hash", "--block-size", "2", "tokens.json"]],
    [["explain", "scenario.json"]],
    [["replay", "trace.jsonl"]],
    [["trace", "--requests", "2000"]],
    [["serve", "--mock", "1", "--once"]],
    [["serve", "--mock", "1", "--port", "0"]],
    [["bench", "--only", "kernel/size", "--quick"]],
  ])("%j is unwritable", (args) => {
    const { status, stderr } = onFullDisk(args);
    expect(stderr).toMatch(/^error: unwritable: cannot write standard output: EFBIG.*\n$/);
    expect(status).toBe(1);
  });

  test.each([[["trace", "--requests", "2000", "--out", "trace.out"]], [["replay", "trace.jsonl", "--out", "out"]]])(
    "%j is advised to make room",
    (args) => {
      const { status, stderr } = onFullDisk(args);
      expect(stderr).toMatch(/^error: unwritable: cannot write .*: EFBIG.* Make room there, or write elsewhere\.\n$/);
      expect(status).toBe(1);
    },
  );

  test("with --json is one document on stderr", () => {
    const { status, stderr } = onFullDisk(["explain", "scenario.json", "--json"]);
    expect(JSON.parse(stderr).error.code).toBe("unwritable");
    expect(status).toBe(1);
  });

  test("but a reader that leaves is no error", () => {
    const command = 'set -o pipefail; "$0" "$1" trace --requests 20000 | head -1';
    const printed = execFileSync("bash", ["-c", command, process.execPath, cli], { encoding: "utf8" });
    expect(printed).toMatch(/^\{.*\}\n$/);
  });
});

describe("bad usage", () => {
  test.each([
    [["hash", "--blocksize", "2", "/nonexistent"], "--blocksize", "unknown option '--blocksize'", "--block-size"],
    [["hash", "--slat", "x", "--block-size", "2"], "--slat", "unknown option '--slat'", "--salt"],
    [["serve", "--wroker", "http://a"], "--wroker", "unknown option '--wroker'", "--worker"],
    [["srve"], undefined, "unknown command 'srve'", "serve"],
    [["hash", "tokens.json"], "--block-size", "--block-size is missing", undefined],
    [["serve", "--port"], "--port", "option '--port <n>' argument missing", undefined],
    [
      ["serve", "--mock", "1", "--port", "70000"],
      "--port",
      '--port must be a whole number from 0 to 65535, not "70000"',
      undefined,
    ],
    ...["0", "-1", "1.5", "x", "1048577"].map(
      (size) =>
        [
          ["hash", "--block-size", size, "tokens.json"],
          "--block-size",
          `--block-size must be a whole number from 1 to 1048576, not "${size}"`,
          undefined,
        ] as [string[], string, string, undefined],
    ),
  ])("%j", (args, path, message, suggestion) => {
    const document = { code: "invalid_usage", message, ...(path && { path }), ...(suggestion && { suggestion }) };
    expect(jsonFailure(args)).toEqual({ status: 2, error: document });
    const { status, stderr } = failure(args);
    expect(status).toBe(2);
    expect(stderr).toContain(`error: invalid_usage: ${message}.`);
    if (suggestion) expect(stderr).toContain(`Did you mean ${suggestion}?`);
  });

  test("no command prints the help", () => {
    const { status, stderr } = warmroute([]);
    expect(status).toBe(2);
    expect(stderr).toMatch(/^Usage: /);
    expect(stderr).not.toContain("error");
  });
});

test("rows that the bench does not know are named on stderr", () => {
  const { status, stdout, stderr } = warmroute(["bench", "--only", "nope", "--json"]);
  expect(status).toBe(0);
  expect(JSON.parse(stdout).results).toEqual([]);
  expect(stderr).toBe("unknown row nope is left out\n");
});

test("an address that is none is no matter of --help", () => {
  const { status, stderr } = failure(["serve", "--mock", "1", "--host", "256.1.1.1", "--port", "0"]);
  expect(status).toBe(1);
  expect(stderr).toMatch(/^error: cannot_listen: cannot listen on 256\.1\.1\.1, port 0: ENOTFOUND\. Choose an address/);
});

test.each([
  [["hash", "--block-size", "2"], "[1,\n 2,,3]", "invalid_tokens", "line 2, column 4"],
  [["explain"], '{"block_size": 16,}', "invalid_scenario", "line 1, column 19"],
])("%j says where %j stops being JSON, in text and as JSON", (args, input, code, place) => {
  const message = `standard input is not JSON: see ${place}`;
  expect(failure(args, input).stderr).toContain(`error: ${code}: ${message}.`);
  expect(jsonFailure(args, input)).toEqual({ status: 1, error: { code, message } });
});

describe("bad input speaks to the reader of a terminal", () => {
  test.each([
    [["hash", "--block-size", "2"], "[1.5]", "invalid_tokens: tokens[0] is not an integer"],
    [["hash", "--block-size", "2"], "{}", "invalid_tokens: the input is not a JSON array"],
    [["hash", "--block-size", "2"], "", "invalid_tokens: standard input is empty."],
    [["explain"], "", "invalid_scenario: standard input is empty."],
    [["hash", "--block-size", "2", "latin1.json"], "", "Save it as UTF-8."],
    [["hash", "--block-size", "2", "."], "", "Name a file: this is a directory."],
    [["replay", "tokens.json/x"], "", "Name a directory: something in the path is a file."],
    [["hash", "--block-size", "2", "no\nfile"], "", "unreadable: cannot read no file: "],
    [["hash", "--block-size", "2", ""], "", "unreadable: cannot read a file without a name."],
    [["explain", ""], "", "unreadable: cannot read a file without a name."],
    [["replay", ""], "", "unreadable: cannot read a file without a name."],
    [["trace", "--out", ""], "", "unwritable: cannot write a file without a name."],
    [["replay", "trace.jsonl", "--out", ""], "", "unwritable: cannot write a file without a name."],
  ])("%j of %j", (args, input, words) => {
    const { status, stderr } = failure(args, input);
    expect(status).toBe(1);
    expect(stderr).toContain(words);
    expect(stderr).not.toMatch(/Uint32Array/);
  });

  test("standard input that cannot be read is not said to be a missing file", () => {
    const command = '"$0" "$1" hash --block-size 2 < .';
    const { status, stderr } = spawnSync("bash", ["-c", command, process.execPath, cli], { encoding: "utf8" });
    expect(status).toBe(1);
    expect(stderr).toMatch(/^error: unreadable: cannot read standard input: /);
    expect(stderr).not.toContain("exists");
  });
});

describe("input with a byte order mark", () => {
  const mark = "\ufeff";

  test("is read as without", () => {
    expect(warmroute(["hash", "--block-size", "2"], `${mark}[1,2]`)).toEqual(
      warmroute(["hash", "--block-size", "2"], "[1,2]"),
    );
    const line = `${JSON.stringify({ output_length: 2, hash_ids: [1] })}\n`;
    const marked = warmroute(["replay", "-", "--mode", "random"], mark + line);
    expect(marked).toEqual(warmroute(["replay", "-", "--mode", "random"], line));
    expect(marked.status).toBe(0);
    expect(marked.stdout).toMatch(/^standard input: 1 request, 512 prompt tokens, /);
  });
});

test("a block larger than every prompt of the demonstration is said, with no share of nothing", () => {
  const { status, stdout } = warmroute(["serve", "--mock", "1", "--once", "--block-size", "1000000"]);
  expect(status).toBe(0);
  expect(stdout).toContain("  1 mock worker, one router; a block is 1,000,000 bytes of prompt");
  expect(stdout).toContain("no prompt fills a block of 1,000,000 bytes");
  expect(stdout).not.toContain("NaN");
});

test("--help says which workers report their caches", () => {
  expect(warmroute(["serve", "--help"]).stdout.replace(/\s+/g, " ")).toContain(
    "real ones get each request by load alone",
  );
});
