// What a construction does with each kind of plugin that works for a router as a whole. A new kind adds its hook here.
import type { Clock } from "../core/clock.js";
import type { Logger } from "../core/log.js";
import type { RouterPlugins } from "../plugins/bundle.js";
import type { RequestClassifierContext } from "../plugins/request-classifier/contract.js";
import { makeClassifier } from "../scheduling/classifier/make-classifier.js";
import { ClassifierRunner } from "../scheduling/classifier/runner.js";
import type { PolicyClasses } from "../scheduling/queue/policy-class.js";
import type { RouterOptions } from "./contract.js";

/** The router that plugins are installed in, as far as they may know it. */
export interface Installation {
  readonly options: RouterOptions;
  readonly blockSize: number;
  readonly classes: PolicyClasses;
  readonly clock: Clock;
  readonly log: Logger;
  random(): number;
  workers: RequestClassifierContext["workers"];
}

/** What was installed; each is closed with the router. */
export interface Installed {
  classifier?: ClassifierRunner;
}

type Hook = (plugins: RouterPlugins, router: Installation) => Installed;

const requestClassifier: Hook = ({ requestClassifier: factory }, router) => {
  if (!factory) return {};
  const { options, blockSize, classes, clock, log, random, workers } = router;
  const classifier = makeClassifier(factory, { blockSize, nowMs: () => clock.now(), random, log, workers });
  const { classifyTimeoutMs, maxPending, allowPriority } = options;
  return {
    classifier: new ClassifierRunner({ classifier, classes, clock, log, classifyTimeoutMs, maxPending, allowPriority }),
  };
};

const hooks: readonly Hook[] = [requestClassifier];

/** Installs every kind; called once by a router's construction. Throws `provider` or `invalid_plugin`. */
export function install(plugins: RouterPlugins, router: Installation): Installed {
  return Object.assign({}, ...hooks.map((hook) => hook(plugins, router)));
}
