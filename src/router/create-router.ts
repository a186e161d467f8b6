import { init } from "../kernel/module.js";
import type { RouterOptions } from "./contract.js";
import { KvRouter } from "./kv-router.js";

/** A router for one model. Throws `invalid_config`, `invalid_worker`, `invalid_block_size` or `kernel_missing`. */
export async function createRouter(options: RouterOptions = {}): Promise<KvRouter> {
  await init();
  return new KvRouter(options);
}
