export { MockWorker, type MockWorkerOptions, type Sleep } from "./mock-worker.js";
export { VirtualClock } from "./virtual-clock.js";
