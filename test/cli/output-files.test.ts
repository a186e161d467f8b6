import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { writeTogether } from "../../src/cli/output-files.js";

const cli = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));
let directory: string;
let at: (name: string) => string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "warmroute-files-"));
  at = (name) => join(directory, name);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

describe("an output", () => {
  test("that is new gets the usual mode; one that is there keeps its own", async () => {
    writeFileSync(at("old"), "before");
    chmodSync(at("old"), 0o606);
    await writeTogether({ [at("old")]: ["a", "b"], [at("new")]: [] });
    expect(readFileSync(at("old"), "utf8")).toBe("ab");
    expect(statSync(at("old")).mode & 0o777).toBe(0o606);
    expect(statSync(at("new")).mode & 0o777).toBe(0o666 & ~process.umask());
    expect(readdirSync(directory).sort()).toEqual(["new", "old"]);
  });

  test("behind links goes where they lead, whether something is there or not", async () => {
    mkdirSync(at("far"));
    writeFileSync(at("far/there"), "before");
    symlinkSync("far/there", at("one"));
    symlinkSync(at("one"), at("two"));
    symlinkSync("far/missing", at("dangling"));
    await writeTogether({ [at("two")]: ["x"], [at("dangling")]: ["y"] });
    expect(lstatSync(at("one")).isSymbolicLink() && lstatSync(at("two")).isSymbolicLink()).toBe(true);
    expect(lstatSync(at("dangling")).isSymbolicLink()).toBe(true);
    expect(readFileSync(at("far/there"), "utf8")).toBe("x");
    expect(readFileSync(at("far/missing"), "utf8")).toBe("y");
  });

  test("in a circle of links is unwritable", async () => {
    symlinkSync("b", at("a"));
    symlinkSync("a", at("b"));
    await expect(writeTogether({ [at("a")]: ["x"] })).rejects.toMatchObject({ code: "unwritable" });
  });

  test("that is a pipe, also behind a link, is written straight through", async () => {
    execFileSync("mkfifo", [at("pipe")]);
    symlinkSync("pipe", at("link"));
    const reader = spawn("cat", [at("pipe")]);
    let read = "";
    reader.stdout.on("data", (data) => (read += data));
    const ended = new Promise((resolve) => reader.once("close", resolve));
    const long = "0123456789".repeat(20_000);
    await writeTogether({ [at("link")]: [long, "end"] });
    await ended;
    expect(read).toBe(`${long}end`);
    expect(lstatSync(at("pipe")).isFIFO() && lstatSync(at("link")).isSymbolicLink()).toBe(true);
    expect(readdirSync(directory).sort()).toEqual(["link", "pipe"]);
  });

  test("that is a directory is unwritable and stays", async () => {
    mkdirSync(at("folder"));
    await expect(writeTogether({ [at("folder")]: ["x"] })).rejects.toMatchObject({ code: "unwritable" });
    expect(readdirSync(directory)).toEqual(["folder"]);
  });

  test("without a name is unwritable, and the message says so", async () => {
    await expect(writeTogether({ "": ["x"] })).rejects.toMatchObject({
      code: "unwritable",
      message: expect.stringContaining("a file without a name") as string,
    });
  });

  test("leaves the old content and nothing else when its source fails", async () => {
    writeFileSync(at("old"), "before");
    const failing = function* () {
      yield "x".repeat(100_000);
      throw new Error("no more");
    };
    await expect(writeTogether({ [at("new")]: ["n"], [at("old")]: failing() })).rejects.toMatchObject({
      code: "unwritable",
      message: expect.stringContaining("no more") as string,
    });
    expect(readFileSync(at("old"), "utf8")).toBe("before");
    expect(readdirSync(directory)).toEqual(["old"]);
    expect(process.listenerCount("SIGINT")).toBe(0);
  });
});

test.each(["SIGINT", "SIGTERM"] as const)("%s leaves no temporary file, and ends the command", async (signal) => {
  const out = at("trace.jsonl");
  const child = spawn(process.execPath, [cli, "trace", "--requests", "1000000", "--sessions", "10000", "--out", out]);
  const ended = new Promise((resolve) => child.once("close", (code, by) => resolve(by ?? code)));
  const temporary = `${out}.${child.pid}.tmp`;
  while (!existsSync(temporary) || statSync(temporary).size === 0) await new Promise((go) => setTimeout(go, 5));
  child.kill(signal);
  expect(await ended).toBe(signal);
  expect(readdirSync(directory)).toEqual([]);
});

test("/dev/stdout as an output is what is open there", () => {
  writeFileSync(at("log"), "kept\n");
  execFileSync("bash", [
    "-c",
    `"$0" "$1" trace --requests 2 --out /dev/stdout >> "$2"`,
    process.execPath,
    cli,
    at("log"),
  ]);
  expect(readFileSync(at("log"), "utf8")).toMatch(/^kept\n\{.*\}\n\{.*\}\n$/);
});

test("a trace of one long session is written in little memory", () => {
  const args = [
    "--max-old-space-size=128",
    cli,
    "trace",
    "--requests",
    "60000",
    "--sessions",
    "1",
    "--out",
    at("long"),
  ];
  execFileSync(process.execPath, args);
  expect(readdirSync(directory)).toEqual(["long"]);
}, 60_000);
