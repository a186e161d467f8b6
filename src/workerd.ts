import { offerModule } from "./kernel/module.js";
import module from "./kernel.wasm";

// An isolate has 128 MB for everything.
offerModule(module, 64 * 2 ** 20);

export * from "./exports.js";
