import type { WorkerRecord } from "../core/types.js";
import type { Dispatcher } from "../dispatch/index.js";
import { isObject } from "./prompt.js";

const askTimeoutMs = 2000;

/**
 * The answer of `/v1/models`: the models that routers name, then what the first worker that answers says of itself.
 * Workers of one router serve the same models, so one answer is enough.
 */
export async function listModels(
  named: readonly string[],
  workers: readonly WorkerRecord[],
  dispatcher: Dispatcher,
  signal: AbortSignal,
): Promise<Response> {
  const data: unknown[] = named.map((id) => ({ id, object: "model", created: 0, owned_by: "warmroute" }));
  for (const worker of workers) {
    const models = await modelsOf(worker, dispatcher, signal);
    if (models === undefined) continue;
    data.push(...models.filter((model) => isObject(model) && !named.includes(String(model.id))));
    break;
  }
  return Response.json({ object: "list", data });
}

/** What a worker lists, or nothing if it does not answer in time and in shape. */
async function modelsOf(
  worker: WorkerRecord,
  dispatcher: Dispatcher,
  signal: AbortSignal,
): Promise<unknown[] | undefined> {
  const { workerId, url, engine, dpSize } = worker;
  try {
    const answer = await dispatcher.send(
      { workerId, url, engine, dpSize, dpRank: 0 },
      {
        path: "/v1/models",
        method: "GET",
        headers: new Headers(),
        signal: AbortSignal.any([signal, AbortSignal.timeout(askTimeoutMs)]),
      },
    );
    const list: unknown = await answer.json();
    return answer.ok && isObject(list) && Array.isArray(list.data) ? list.data : undefined;
  } catch {
    return undefined;
  }
}
