import { constants } from "node:os";
import type { Command } from "commander";
import { WarmrouteError } from "../core/errors.js";
import { parseU64 } from "../core/ids.js";
import type { WorkerInput } from "../core/types.js";
import { HttpError, HttpFrontend } from "../frontend/index.js";
import { counted } from "../replay/index.js";
import type { RouterOptions, Selection } from "../router/contract.js";
import { createRouter } from "../router/create-router.js";
import type { KvRouter } from "../router/kv-router.js";
import { type RunningServer, startServer } from "../runtime/node/index.js";
import { MockWorker } from "../testing/index.js";
import { attributesOf } from "./attributes.js";
import { type DemoRow, demonstrate, renderHeader, renderHints, renderRow, renderSummary } from "./demo.js";
import { numberOption, usageError, wholeOption } from "./options.js";
import { loadPlugins, type PluginFlags, withPluginOptions } from "./plugins.js";
import { BAD_INPUT } from "./report.js";
import { parseWorkerSpecs } from "./worker-spec.js";

interface ServeFlags extends PluginFlags {
  worker?: string[];
  mock?: string;
  port?: string;
  host: string;
  shutdownGrace: string;
  blockSize: string;
  seed?: string;
  attribute?: string[];
  demo?: boolean;
  once?: boolean;
  json?: boolean;
}

const mockModel = "mock";
const defaultPort = 8000;
const mostMocks = 256;
const unseen =
  "only mock workers report their caches in this version: real ones get each request by load alone, least loaded first";

export function registerServe(program: Command): void {
  const command = program
    .command("serve")
    .description("serve an OpenAI-compatible API that sends each request to the worker whose cache fits best");
  withPluginOptions(command)
    .option(
      "--worker <spec...>",
      `a worker: URL, or URL,id=…,role=…,engine=…,dp=…,label.NAME=…; give several or repeat; ${unseen}`,
    )
    .option("--mock <n>", "start n mock workers in this process instead")
    .option("--port <n>", `port to listen on, 0 for any free one (default: $PORT, else ${defaultPort})`)
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option(
      "--shutdown-grace <seconds>",
      "how long requests in flight may go on after a signal; if any is cut then, exit with 1",
      "180",
    )
    .option("--block-size <tokens>", "tokens a KV block; one token is one byte of text", "64")
    .option("--seed <n>", "seed of all random choices; from the system unless given")
    .option("--attribute <spec...>", "what plugins may know of a request: NAME=header:HEADER; give several or repeat")
    .option("--demo", "send a few related prompts first and print where each went and why")
    .option("--once", "exit after the demonstration")
    .option("--json", "print one JSON document on stdout, all else on stderr")
    .action(serve);
}

async function serve(flags: ServeFlags): Promise<void> {
  const demo = flags.demo === true || flags.once === true;
  const mocks = flags.mock === undefined ? 0 : wholeOption("--mock", flags.mock, mostMocks);
  const workers = parseWorkerSpecs(flags.worker ?? []);
  if (mocks > 0 === workers.length > 0) throw usageError("--worker", "give either --worker URL or --mock N");
  if (demo && mocks === 0)
    throw usageError("--demo", "--demo and --once need --mock: the prompts are not meant for real workers");
  const port = portOf(flags);
  if (flags.host.trim() === "") throw usageError("--host", "--host is empty; 0.0.0.0 or :: listens on all addresses");
  const graceMs = numberOption("--shutdown-grace", flags.shutdownGrace, 0, 86_400) * 1000;
  const attributes = attributesOf(flags.attribute);
  const options: RouterOptions = {
    blockSize: wholeOption("--block-size", flags.blockSize, 1_048_576),
    plugins: await loadPlugins(flags),
    ...(attributes && { attributes }),
  };
  if (flags.seed !== undefined) options.seed = parseU64(flags.seed, "--seed", "invalid_usage");
  // The same demonstration each time, unless another is asked for.
  else if (demo) options.seed = 1n;

  const open: { close(): Promise<unknown> }[] = [];
  let cut = 0;
  const closeAll = async () => {
    for (const one of open.reverse()) await one.close();
  };
  try {
    const router = await createRouter(mocks > 0 ? { ...options, model: mockModel } : options, {
      entryPoint: "warmroute serve",
    });
    open.push(router);
    if (mocks > 0) open.push(...(await startMocks(router, mocks)));
    else for (const worker of workers) router.addWorker(worker);
    const decisions = new Map<string, Selection>();
    const frontend = new HttpFrontend({
      ...(mocks > 0 ? { routers: [router] } : { fallback: router }),
      onError: logError,
      ...(demo ? { onDecision: (selection: Selection) => void decisions.set(selection.requestId, selection) } : {}),
    });
    const server = await startServer({ fetch: frontend.fetch, port, host: flags.host });
    const drain = async () => {
      cut = await server.close({ graceMs });
    };
    open.push({ close: drain }, frontend);

    const say = (text: string) => (flags.json ? process.stderr : process.stdout).write(`${text}\n`);
    const document: Record<string, unknown> = describeServer(server, router, mocks > 0);
    if (demo) document.demonstration = await runDemo(server.url, router, decisions, say);
    if (flags.json) process.stdout.write(`${JSON.stringify(document)}\n`);
    if (demo) say(renderHints(flags.once ? undefined : server.url, mockModel, router.blockSize));
    if (mocks === 0) say(unseen);
    const unused = [...(router.plugins.profiles?.models.keys() ?? [])].filter((model) => model !== router.model);
    if (unused.length > 0) {
      const which = unused.map((model) => JSON.stringify(model)).join(", ");
      process.stderr.write(
        `the policy file's classes for ${which} are not used: this server sorts all requests as those of ${router.model}\n`,
      );
    }
    if (!flags.once) {
      // Whoever reads the line may signal at once.
      const signalled = untilSignalled();
      say(`listening on ${server.url}`);
      await signalled;
      const { live } = router.stats().bookings;
      if (live > 0) process.stderr.write(`draining: ${live} in flight; signal again to end now\n`);
    }
  } finally {
    await closeAll();
  }
  if (cut > 0) {
    process.stderr.write(`cut: ${counted(cut, "request")} still in flight after --shutdown-grace\n`);
    process.exitCode = BAD_INPUT;
  }
}

/** Mock workers behind servers of their own; what their caches do goes straight to the router. */
async function startMocks(router: KvRouter, count: number): Promise<RunningServer[]> {
  const servers: RunningServer[] = [];
  for (let i = 1; i <= count; i++) {
    const mock = new MockWorker({
      workerId: String(i),
      model: mockModel,
      blockSize: router.blockSize,
      onKvEvent: (event) => void router.applyEvent(event),
    });
    const server = await startServer({ fetch: mock.fetch, port: 0 });
    servers.push(server);
    router.addWorker({ workerId: mock.workerId, url: server.url } satisfies WorkerInput);
  }
  return servers;
}

async function runDemo(
  url: string,
  router: KvRouter,
  decisions: Map<string, Selection>,
  say: (text: string) => void,
): Promise<DemoRow[]> {
  const count = router.workers().length;
  say(
    `\n  ${counted(count, "mock worker")}, one router; a block is ${counted(router.blockSize, "byte")} of prompt; times are taken after a warm-up\n\n${renderHeader()}`,
  );
  const rows: DemoRow[] = [];
  for await (const row of demonstrate({ url, model: mockModel, blockSize: router.blockSize, decisions })) {
    rows.push(row);
    say(renderRow(rows.length, row));
  }
  say(renderSummary(rows, router.blockSize));
  return rows;
}

function describeServer(server: RunningServer, router: KvRouter, mock: boolean) {
  return {
    listening: server.url,
    ...(mock ? { model: mockModel } : {}),
    block_size: router.blockSize,
    workers: router.workers().map(({ workerId, url, role, dpSize }) => ({
      worker_id: workerId,
      url,
      role,
      dp_size: dpSize,
    })),
  };
}

/** Codes and ids only: what a request says is nobody's business in a log. */
function logError(error: unknown, requestId: string): void {
  if (error instanceof HttpError) return;
  if (!(error instanceof WarmrouteError)) {
    const stack = error instanceof Error ? error.stack?.slice(error.stack.indexOf("\n    at ")) : "";
    process.stderr.write(`${requestId}: internal_error${stack}\n`);
    return;
  }
  if (error.status < 500) return;
  const { url, reason } = error.details;
  const why = [error.message, url, reason].filter((part) => part !== undefined).join(": ");
  // A policy sees nothing that a request says, so its own words can tell nothing.
  const { cause } = error;
  const its = error.code === "policy_failed" && cause instanceof Error ? `\n${cause.stack ?? cause.message}` : "";
  process.stderr.write(`${requestId}: ${error.code}: ${why}${its}\n`);
}

/** Resolves at the first SIGTERM or SIGINT; the second ends the process at once. */
function untilSignalled(): Promise<void> {
  return new Promise((resolve) => {
    let signalled = false;
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      process.on(signal, () => {
        // As a shell tells of a process that a signal ended.
        if (signalled) process.exit(128 + constants.signals[signal]);
        signalled = true;
        resolve();
      });
    }
  });
}

function portOf(flags: ServeFlags): number {
  if (flags.port !== undefined) return portNumber("--port", flags.port);
  // Nobody will call a server that ends by itself, so it need not claim a known port.
  if (flags.once) return 0;
  const { PORT } = process.env;
  return PORT === undefined || PORT === "" ? defaultPort : portNumber("PORT", PORT);
}

/** 0 stands for any free port. */
const portNumber = (name: string, text: string) => wholeOption(name, text, 65_535, 0);
