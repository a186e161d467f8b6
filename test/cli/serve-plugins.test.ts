// `warmroute serve` with plugins, over HTTP and in front of mock workers.
import { readFileSync, rmSync } from "node:fs";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { pluginFiles } from "./plugin-files.js";
import { killAll, listening, post, start } from "./server-process.js";

const { directory, path } = pluginFiles();
afterEach(killAll);
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const catalog = ["--catalog", path("catalog.mjs")];
const ask = (url: string, id: string, tenant: string) =>
  post(url, "/v1/completions", { prompt: "one two three", max_tokens: 1 }, { "x-request-id": id, "x-tenant": tenant });

test("a policy and a classifier from a catalog decide", async () => {
  const plugins = ["--policy", path("gated.yaml"), ...catalog, "--attribute", "tenant=header:x-tenant"];
  const { url, child, output, exited } = await listening(["--mock", "3", "--port", "0", "--seed", "1", ...plugins]);
  for (const id of ["r1", "r2", "r3"]) {
    const answer = await ask(url, id, "acme");
    expect(answer.status).toBe(200);
    await answer.text();
    // The default policy would draw the first, and a cold worker is as good as any other.
    expect(answer.headers.get("x-warmroute-worker")).toBe("3");
  }
  const refused = await ask(url, "r4", "blocked");
  expect(refused.status).toBe(500);
  expect(await refused.json()).toEqual({
    error: {
      message: "the request classifier failed",
      type: "server_error",
      code: "request_classifier_failed",
    },
  });
  child.kill("SIGTERM");
  expect(await exited).toBe(0);
  expect(output.stderr).not.toContain("one two three");
  const events = readFileSync(path("events.txt"), "utf8").trimEnd().split("\n");
  const served = ["r1", "r2", "r3"].flatMap((id) => [`${id} sent`, `${id} responding`, `${id} completed`]);
  expect(events).toEqual([...served, "r4 aborted"]);
});

test("a policy that fails is told by its own error in the log, and by its code alone to the client", async () => {
  const { url, child, output, exited } = await listening([
    "--mock",
    "1",
    "--port",
    "0",
    "--policy",
    path("careless.yaml"),
    ...catalog,
  ]);
  const answer = await ask(url, "r1", "acme");
  expect(answer.status).toBe(500);
  expect(await answer.text()).not.toMatch(/deviceOverlapBlocks|careless\.mjs/);
  child.kill("SIGTERM");
  expect(await exited).toBe(0);
  expect(output.stderr).toMatch(
    /^r1: policy_failed: .*scorer 0.*\nTypeError: .*deviceOverlapBlocks.*\n +at .*catalog\.mjs:\d+/m,
  );
});

test("all that is wrong with the file is told at once", async () => {
  const { exited, output } = start(["--mock", "1", "--port", "0", "--policy", path("two-faults.yaml")]);
  expect(await exited).toBe(1);
  expect(output.stderr).toMatch(
    /two-faults\.yaml:1:1: worker_selektion .*\n +2:1: unknown_key: request_clasifier .*did you mean request_classifier\?/,
  );
});

test("a catalog that is a directory is told from one that is not there", async () => {
  const { exited, output } = start(["--mock", "1", "--port", "0", "--catalog", directory]);
  expect(await exited).toBe(1);
  expect(output.stderr).toContain("it is a directory; name the module in it");
});

test("classes of a model that is not served by its name are told of", async () => {
  const { child, output, exited } = await listening([
    "--mock",
    "1",
    "--port",
    "0",
    "--policy",
    path("other-model.yaml"),
  ]);
  child.kill("SIGTERM");
  expect(await exited).toBe(0);
  expect(output.stderr).toContain('classes for "big/model" are not used');
});

test("a demonstration that the policy refuses ends with a code, not a stack", async () => {
  const refusing = ["--policy", path("careless.yaml"), ...catalog];
  const { exited, output } = start(["--mock", "1", "--once", ...refusing]);
  expect(await exited).toBe(1);
  expect(output.stderr).toMatch(
    /^error: upstream_failed: the demonstration's request was refused: 500 policy_failed\. Try/m,
  );
});

test("the file may come from the environment, and an option goes before it", async () => {
  const env = { WARMROUTE_ROUTER_POLICY_CONFIG: path("misspelt.yaml") };
  const { exited, output } = start(["--mock", "1", "--port", "0", "--json", ...catalog], env);
  expect(await exited).toBe(1);
  expect(JSON.parse(output.stderr).error).toMatchObject({ code: "unknown_key" });
  const { url } = await listening(
    ["--mock", "2", "--port", "0", "--policy", path("last-worker.yaml"), ...catalog],
    env,
  );
  expect((await ask(url, "r", "acme")).headers.get("x-warmroute-worker")).toBe("2");
});

describe("what is broken is refused before a port is bound", () => {
  test.each([
    [["--policy", path("misspelt.yaml")], 1, "unknown_key"],
    [["--policy", path("nowhere.yaml")], 1, "unreadable"],
    [["--policy", ""], 2, "invalid_usage"],
    [["--policy", path("last-worker.yaml")], 1, "unknown_type"],
    [["--policy", path("gate.yaml")], 1, "unknown_type"],
    [["--policy", path("no-worker.yaml"), ...catalog], 1, "provider"],
    [["--policy", path("decode.yaml"), ...catalog], 1, "role_not_served"],
    [["--catalog", path("nowhere.mjs")], 1, "unreadable"],
    [["--catalog", path("throws.mjs")], 1, "invalid_plugin"],
    [[...catalog, ...catalog], 1, "duplicate"],
    [["--prefill-policy", "nobody"], 1, "unknown_instance"],
    [["--decode-policy", "nobody"], 1, "unknown_instance"],
    [["--attribute", "tenant"], 2, "invalid_usage"],
    [["--attribute", "tenant=body:x"], 2, "invalid_usage"],
    [["--attribute", "a=header:x", "--attribute", "a=header:y"], 2, "invalid_usage"],
  ])("%j", async (args, code, error) => {
    // The port is taken, so whatever comes to bind it says so instead.
    const { url } = await listening(["--mock", "1", "--port", "0"]);
    const { output, exited } = start(["--mock", "1", "--port", new URL(url).port, "--json", ...args]);
    expect(await exited).toBe(code);
    expect(output.stdout).toBe("");
    expect(JSON.parse(output.stderr).error.code).toBe(error);
  });
});
