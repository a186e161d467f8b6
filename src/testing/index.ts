export { MockWorker, type MockWorkerOptions, type Sleep } from "./mock-worker.js";
