// workerd: requests that share a router of one rank, of which one waits until another one's booking ends.
import type { Selection } from "../../../src/router/contract.js";
import { createRouter } from "../../../src/workerd.js";

const options = { workers: [{ workerId: "1" }], config: { routerQueueThreshold: 0 } };
const outside = await createRouter(options).catch((error) => error.message);
let router: ReturnType<typeof createRouter> | undefined;
const selected = new Map<string, Selection>();
const tokens = Uint32Array.from({ length: 256 }, (_, i) => i);

export default {
  async fetch(request: Request): Promise<Response> {
    router ??= createRouter(options);
    const [, verb, id = ""] = new URL(request.url).pathname.split("/");
    try {
      if (verb === "outside") return Response.json(outside);
      if (verb === "select") {
        const selection = await (await router).select({ requestId: id, tokens });
        selected.set(id, selection);
        return Response.json({ worker: selection.worker.workerId, waited: selection.queueWaitMs > 0 });
      }
      if (verb === "free") selected.get(id)!.booking.free();
      const { pending } = (await router).stats().queue;
      return Response.json({ pending });
    } catch (error) {
      return new Response(error instanceof Error ? error.stack : String(error), { status: 500 });
    }
  },
};
