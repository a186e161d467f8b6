// The `warmroute/testing` entry: mock workers, and the suites that plugins are tested with under vitest.
export * from "./testing/index.js";
export { testRequestClassifier } from "./testing/request-classifier.js";
export { testWorkerSelectionPolicy } from "./testing/worker-selection.js";
