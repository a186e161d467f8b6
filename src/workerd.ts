import { offerModule } from "./kernel/module.js";
import module from "./kernel.wasm";

offerModule(module);

export * from "./exports.js";
