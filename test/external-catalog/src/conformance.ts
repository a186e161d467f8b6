// Both catalogs under the suites that the package exports.
import type { WorkerSelectionInit } from "warmroute/plugins";
import { testRequestClassifier, testWorkerSelectionPolicy } from "warmroute/testing";
import * as newNames from "./new-names.js";
import * as oldNames from "./old-names.js";

const init = { role: "aggregated" } as WorkerSelectionInit;

testWorkerSelectionPolicy("with old names", () => oldNames.factory(init));
testWorkerSelectionPolicy("with new names", () => newNames.factory(init));
testRequestClassifier("with new names", newNames.classifierFactory);
