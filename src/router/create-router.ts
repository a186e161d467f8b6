import { init } from "../kernel/module.js";
import type { RouterOptions } from "./contract.js";
import { KvRouter, type RouterHost } from "./kv-router.js";

/**
 * A router for one model. Throws `invalid_config`, `invalid_worker`, `invalid_block_size` or `kernel_missing`; of its
 * plugins `provider`, `invalid_plugin`, `index_required`, `role_not_served`, `classifier_not_supported`,
 * `classifier_not_installed` or `no_catalog_installed`.
 */
export async function createRouter(options: RouterOptions = {}, host?: RouterHost): Promise<KvRouter> {
  await init();
  return new KvRouter(options, host ?? { entryPoint: "createRouter" });
}
