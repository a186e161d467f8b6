// A catalog that writes down what is done with it, and bundles resolved from it.
import type { WorkerRole } from "../../src/core/types.js";
import {
  type ClassifyEvent,
  type ClassifyRequest,
  createRegistry,
  parsePolicy,
  type RequestClassifier,
  type RequestClassifierContext,
  type RouterPluginRegistry,
  type RouterPlugins,
  type WorkerSelectionInit,
  WorkerSelectionPolicy,
} from "../../src/plugins.js";

/** Everything that was called, in order. */
export class Diary {
  readonly providers: string[] = [];
  readonly factories: string[] = [];
  readonly contexts: RequestClassifierContext[] = [];
  readonly classified: ClassifyRequest[] = [];
  readonly events: ClassifyEvent[] = [];
  readonly closed: string[] = [];
  /** Names of slots that policies were told of. */
  readonly released: number[] = [];
  /** What a classifier does with a request, where a test wants more than letting it pass. */
  classify: (request: ClassifyRequest, model: number) => ClassifyRequest | Promise<ClassifyRequest> = (request) =>
    request;
  /** Fails in the factory of this pool. */
  failsFor: WorkerRole | "classifier" | undefined;

  readonly register = (registry: RouterPluginRegistry): void => {
    registry.registerWorkerSelection("noted", () => {
      this.providers.push("noted");
      return (init) => this.#policy(init);
    });
    registry.registerRequestClassifier("noted", () => {
      this.providers.push("classifier");
      return (context) => this.#classifier(context);
    });
  };

  #policy({ role, partition: { model, routingGroup } }: WorkerSelectionInit): WorkerSelectionPolicy {
    const name = `${model}/${routingGroup}/${role}`;
    this.factories.push(name);
    if (this.failsFor === role) throw new Error("no policy today");
    return new WorkerSelectionPolicy({
      label: "noted",
      onSlotReleased: (slot) => void this.released.push(slot),
      close: () => void this.closed.push(name),
    });
  }

  #classifier(context: RequestClassifierContext): RequestClassifier {
    const number = this.contexts.push(context) - 1;
    this.factories.push("classifier");
    if (this.failsFor === "classifier") throw new Error("no classifier today");
    return {
      classify: (request) => {
        this.classified.push(request);
        return this.classify(request, number);
      },
      onEvent: (event) => void this.events.push(event),
      close: () => void this.closed.push(`classifier ${number}`),
    };
  }

  /** Resolves a policy file with this catalog. */
  async bundle(yaml: string): Promise<RouterPlugins> {
    return createRegistry(this).resolvePlugins(await parsePolicy(yaml));
  }
}

/** A policy file that gives these roles the noted policy. */
export const selects = (...roles: readonly WorkerRole[]): string =>
  [
    "worker_selection:",
    ...roles.map((role) => `  ${role}: mine`),
    "  instances:",
    "    - {name: mine, type: noted}",
  ].join("\n");

export const classifies = "request_classifier: {type: noted}";

/** Lets what is queued for a moment later happen. */
export const settled = () => new Promise<void>((resolve) => setTimeout(resolve, 5));
