import type { WorkerInput } from "../../src/core/types.js";
import { parseWorker } from "../../src/core/worker.js";
import { trackResponse } from "../../src/dispatch/index.js";
import type { Router, Selection, SelectRequest } from "../../src/router/contract.js";

/** A router that sends everything to its first worker and counts what is live there. */
export function fakeRouter(workers: readonly WorkerInput[], options: { model?: string; evidence?: string } = {}) {
  const requests: SelectRequest[] = [];
  const ended: string[] = [];
  const live = new Set<string>();
  const select = async (request: SelectRequest): Promise<Selection> => {
    requests.push(request);
    const id = request.requestId!;
    live.add(id);
    const end = (how: string) => {
      ended.push(how);
      live.delete(id);
    };
    const worker = { workerId: String(workers[0]!.workerId), dpRank: 1 };
    const booking = {
      worker,
      sent() {},
      firstToken() {},
      renew() {},
      tokens() {},
      complete: () => end("complete"),
      abort: () => end("abort"),
    };
    return {
      requestId: id,
      worker,
      record: parseWorker(workers[0]),
      overlap: { deviceBlocks: 3, hostBlocks: 0, diskBlocks: 0, sharedBlocks: 0 },
      evidence: options.evidence ?? "events",
      booking,
      track: (...[response, options]: Parameters<Selection["track"]>) => trackResponse(booking, response, options),
    } as unknown as Selection;
  };
  const router = {
    model: options.model ?? "m",
    select,
    serveAt() {},
    workers: () =>
      workers.map((worker) => ({ engine: "auto", dpSize: 1, ...worker, workerId: String(worker.workerId) })),
  } as unknown as Router;
  return { router, requests, ended, live };
}
