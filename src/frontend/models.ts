import { WarmrouteError } from "../core/errors.js";
import type { WorkerRecord } from "../core/types.js";
import { type Dispatcher, shownUrl } from "../dispatch/index.js";
import { isObject } from "./prompt.js";

const askTimeoutMs = 2000;

/** A model as `/v1/models` lists it; workers may say more of theirs. */
type Model = Record<string, unknown>;

/** Where models come from: the names of routers, and the workers of the fallback router, if there is one. */
export interface ModelSources {
  named: readonly string[];
  workers?: readonly WorkerRecord[];
  dispatcher: Dispatcher;
  signal: AbortSignal;
}

/** The answer of `/v1/models`. */
export async function listModels(sources: ModelSources): Promise<Response> {
  return Response.json({ object: "list", data: await modelsOf(sources) });
}

/** The answer of `/v1/models/{id}`. Throws `model_not_found`. */
export async function oneModel(id: string, sources: ModelSources): Promise<Response> {
  const model = (await modelsOf(sources)).find((one) => one.id === id);
  if (model) return Response.json(model);
  throw new WarmrouteError("model_not_found", "no such model here; see /v1/models", { path: "model" });
}

/**
 * The models that routers name, then what the first worker that answers says of itself. Workers of one router serve
 * the same models, so one answer is enough. Throws `no_endpoints` or `upstream_failed` where only workers could tell
 * and none does.
 */
async function modelsOf({ named, workers, dispatcher, signal }: ModelSources): Promise<Model[]> {
  const models: Model[] = named.map((id) => ({ id, object: "model", created: 0, owned_by: "warmroute" }));
  if (workers === undefined) return models;
  let failure = new WarmrouteError("no_endpoints", "there is no worker to ask for its models");
  for (const worker of workers) {
    try {
      const own = await modelsOfWorker(worker, dispatcher, signal);
      return [...models, ...own.filter((model) => !named.includes(String(model.id)))];
    } catch (error) {
      signal.throwIfAborted();
      failure = error as WarmrouteError;
    }
  }
  if (models.length > 0) return models;
  if (workers.length < 2) throw failure;
  throw new WarmrouteError(
    failure.code,
    `none of ${workers.length} workers lists its models; the last: ${failure.message}`,
    {
      cause: failure,
      details: failure.details,
    },
  );
}

/** What a worker lists. Rejects with `upstream_failed` if it does not answer in time and in shape. */
async function modelsOfWorker(worker: WorkerRecord, dispatcher: Dispatcher, signal: AbortSignal): Promise<Model[]> {
  const { workerId, url, engine, dpSize } = worker;
  const failed = (what: string, cause?: unknown) =>
    new WarmrouteError("upstream_failed", `worker ${workerId} ${what}`, {
      cause,
      details: { workerId, url: shownUrl(url) },
    });
  const timeout = AbortSignal.timeout(askTimeoutMs);
  try {
    const answer = await dispatcher.send(
      { workerId, url, engine, dpSize, dpRank: 0 },
      { path: "/v1/models", method: "GET", headers: new Headers(), signal: AbortSignal.any([signal, timeout]) },
    );
    if (!answer.ok) {
      await answer.body?.cancel();
      throw failed(`answered with status ${answer.status}`);
    }
    const list: unknown = await answer.json();
    if (isObject(list) && Array.isArray(list.data)) return list.data.filter(isObject);
    throw failed("answered with no list of models");
  } catch (cause) {
    if (cause instanceof WarmrouteError) throw cause;
    throw failed(
      timeout.aborted ? `did not answer within ${askTimeoutMs} ms` : "answered with no list of models",
      cause,
    );
  }
}
