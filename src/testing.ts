// The `warmroute/testing` entry: mock workers, and the suites that plugins are tested with under vitest.
export * from "./testing/index.js";
export { type RequestClassifierSuiteOptions, testRequestClassifier } from "./testing/request-classifier.js";
export { testWorkerSelectionPolicy, type WorkerSelectionSuiteOptions } from "./testing/worker-selection.js";
