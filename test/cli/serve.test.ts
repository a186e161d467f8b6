import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { needsProgram } from "../tools.js";
import { killAll, listening, post, start } from "./server-process.js";

afterEach(killAll);

/** A port where nothing listens. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}

const decision = (answer: Response) => ({
  worker: answer.headers.get("x-warmroute-worker"),
  blocks: Number(answer.headers.get("x-warmroute-overlap-blocks")),
  evidence: answer.headers.get("x-warmroute-evidence"),
});

describe("warmroute serve", () => {
  test("npm start -- --once: prints the demonstration and exits 0", async () => {
    const { output, exited } = start(["--mock", "4", "--demo", "--once"]);
    expect(await exited).toBe(0);
    expect(output.stderr).toBe("");
    expect(output.stdout).toContain("Ada, first turn");
    expect(output.stdout).toContain("the workers report the same");
    expect(output.stdout).toContain("npx warmroute replay examples/sample-trace.jsonl");
    expect(output.stdout).not.toContain("listening on");
    expect(output.stdout).not.toContain("\x1b[");
  });

  test("--json prints the demonstration as one document", async () => {
    const { output, exited } = start(["--mock", "4", "--once", "--json"]);
    expect(await exited).toBe(0);
    const { demonstration: rows, workers } = JSON.parse(output.stdout);
    expect(workers).toHaveLength(4);
    const [ada, ben, adaAgain, , letter, benAgain] = rows;
    expect(ada).toMatchObject({ reused_blocks: 0, cached_tokens: 0, evidence: "none" });
    // The system prompt is shared, a conversation grows: both are found again where they were.
    expect(ben.worker).toBe(ada.worker);
    expect(ben.reused_blocks).toBeGreaterThan(20);
    expect(adaAgain.worker).toBe(ada.worker);
    expect(adaAgain.reused_blocks).toBeGreaterThanOrEqual(ada.prompt_blocks);
    for (const row of rows) expect(row.cached_tokens).toBe(row.reused_blocks * 16);
    // A busy worker loses a request although it holds most of it.
    expect(letter.worker).toBe(ada.worker);
    expect(benAgain.worker).not.toBe(ada.worker);
    expect(benAgain.why).toContain("is busy");
  });

  test("serves: two requests that share a prefix land on one worker, the second reports the overlap", async () => {
    const { url, child, output, exited } = await listening(["--mock", "3", "--port", "0", "--seed", "7"]);
    expect(output.stdout).toBe(`listening on ${url}\n`);
    const shared = "a long preamble that both prompts have in common ".repeat(20);
    const first = await post(url, "/v1/completions", { prompt: `${shared}one`, max_tokens: 2 });
    await first.text();
    const second = await post(url, "/v1/completions", { prompt: `${shared}two`, max_tokens: 2 });
    const { usage } = (await second.json()) as { usage: { prompt_tokens_details: { cached_tokens: number } } };
    expect(decision(first)).toMatchObject({ blocks: 0, evidence: "none" });
    expect(decision(second)).toEqual({ worker: decision(first).worker, blocks: 15, evidence: "approximate" });
    // 15 blocks of 64 bytes are 240 tokens of 4.
    expect(usage.prompt_tokens_details.cached_tokens).toBe(240);

    const stream = await post(url, "/v1/chat/completions", {
      messages: [{ role: "user", content: "hi" }],
      stream: true,
    });
    expect((await stream.text()).endsWith("data: [DONE]\n\n")).toBe(true);
    const models = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(models.data.map(({ id }) => id)).toEqual(["mock"]);
    expect((await fetch(`${url}/health`)).status).toBe(200);

    child.kill("SIGTERM");
    expect(await exited).toBe(0);
  });

  test("the curl command works as it is printed", async ({ skip }) => {
    needsProgram("curl", skip);
    const { output } = await listening(["--mock", "4", "--demo", "--port", "0"]);
    const command = /^ {4}curl .*\n.*\}'$/m.exec(output.stdout)![0];
    const answers = [1, 2].map(() => execFileSync("sh", ["-c", command], { encoding: "utf8" }));
    expect(answers[0]).toContain("x-warmroute-overlap-blocks: 0");
    const promised = /the second answer says (x-warmroute-overlap-blocks: \d+)/.exec(output.stdout)![1];
    expect(answers[1]).toContain(promised);
    expect(answers[1]).toContain('"cached_tokens":16');
  });

  test("a signal right after the line closes it, too", async () => {
    const { child, exited } = await listening(["--mock", "1", "--port", "0"]);
    child.kill("SIGINT");
    expect(await exited).toBe(0);
  });

  test("C55: starts although its only worker is down, and says so per request", async () => {
    const down = `http://127.0.0.1:${await freePort()}`;
    const { url, output } = await listening(["--worker", `${down}/base`, "--port", "0"]);
    expect(output.stdout).toContain("real ones get each request by load alone");
    const answer = await post(url, "/v1/completions", { model: "any", prompt: "quoted nowhere" });
    expect(answer.status).toBe(502);
    expect(((await answer.json()) as { error: { code: string } }).error.code).toBe("upstream_failed");
    const id = answer.headers.get("x-request-id");
    await expect
      .poll(() => output.stderr)
      .toBe(`${id}: upstream_failed: worker 1 did not answer: ${down}/base: ECONNREFUSED\n`);
    expect((await fetch(`${url}/v1/models`)).status).toBe(502);
    expect((await fetch(`${url}/health`)).status).toBe(200);
  });

  test("says on stderr that a worker died in the middle of its answer", async () => {
    const worker = createServer((incoming, outgoing) => {
      incoming.resume();
      outgoing.write("half", () => outgoing.destroy());
    }).listen(0, "127.0.0.1");
    await once(worker, "listening");
    const { port } = worker.address() as AddressInfo;
    const { url, output } = await listening(["--worker", `http://127.0.0.1:${port}`, "--port", "0"]);
    const answer = await post(url, "/v1/completions", { prompt: "quoted nowhere" }, { "x-request-id": "r1" });
    expect(answer.status).toBe(200);
    await expect(answer.text()).rejects.toThrow();
    await expect.poll(() => output.stderr).toBe("r1: upstream_failed: worker 1 broke its answer off: UND_ERR_SOCKET\n");
    worker.close();
  });

  describe("with a worker that hangs", () => {
    const draining = "draining: 1 in flight; signal again to end now\n";
    /** Serves in front of a worker that takes requests and never answers, with one request on its way. */
    const hanging = async (...args: string[]) => {
      const worker = createServer();
      const taken = new Promise((resolve) => worker.once("request", resolve));
      worker.listen(0, "127.0.0.1");
      await once(worker, "listening");
      const { port } = worker.address() as AddressInfo;
      const server = await listening(["--worker", `http://127.0.0.1:${port}`, "--port", "0", ...args]);
      const answer = post(server.url, "/v1/completions", { prompt: "a" }).catch(() => "cut");
      await taken;
      return { ...server, answer, close: () => worker.close().closeAllConnections() };
    };

    test.each([
      ["SIGINT", 130],
      ["SIGTERM", 143],
    ] as const)(
      "the first signal says what it waits for, the second, %s, ends at once with %i",
      async (signal, code) => {
        const { child, output, exited, answer, close } = await hanging();
        child.kill("SIGTERM");
        await expect.poll(() => output.stderr).toBe(draining);
        child.kill(signal);
        expect(await exited).toBe(code);
        expect(await answer).toBe("cut");
        close();
      },
    );

    test("--shutdown-grace bounds the wait, and what it cuts is told", async () => {
      const { child, output, exited, answer, close } = await hanging("--shutdown-grace", "0.2");
      child.kill("SIGTERM");
      expect(await exited).toBe(1);
      expect(output.stderr).toBe(`${draining}cut: 1 request still in flight after --shutdown-grace\n`);
      expect(await answer).toBe("cut");
      close();
    });
  });

  test("routes to real workers over HTTP, whatever their models are called", async () => {
    const mock = await listening(["--mock", "1", "--port", "0"]);
    const router = await listening(["--worker", `${mock.url},id=42`, "--port", "0"]);
    const answer = await post(router.url, "/v1/completions", { prompt: "a", max_tokens: 1 });
    expect(answer.status).toBe(200);
    expect(decision(answer).worker).toBe("42");
    const models = (await (await fetch(`${router.url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(models.data.map(({ id }) => id)).toEqual(["mock"]);
  });

  test("takes its port from PORT, and a taken one is a typed error", async () => {
    const { url } = await listening(["--mock", "1"], { PORT: "0" });
    const { port } = new URL(url);
    const second = start(["--mock", "1", "--json"], { PORT: port });
    expect(await second.exited).toBe(1);
    expect(JSON.parse(second.output.stderr).error.code).toBe("port_in_use");
  });

  test.each([
    [[]],
    [["--mock", "0"]],
    [["--mock", "two"]],
    [["--mock", "2", "--worker", "http://a"]],
    [["--worker", "http://a,port=1"]],
    [["--worker", "http://a", "--demo"]],
    [["--mock", "1", "--port", "65536"]],
    [["--mock", "1", "--host", ""]],
    [["--mock", "1", "--shutdown-grace", "-1"]],
    [["--worker", "http://u:p@a"]],
    [["--mock", "1", "--block-size", "0"]],
    [["--mock", "1", "--seed", "x"]],
  ])("%j is bad usage", async (args) => {
    const { output, exited } = start(args);
    expect(await exited).toBe(2);
    expect(output.stdout).toBe("");
    expect(output.stderr).not.toBe("");
  });
});
