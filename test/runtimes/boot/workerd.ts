// workerd: the entry that imports the kernel as a module; everything happens inside a request.
import { explainScenario } from "../../../src/cli/scenario.js";
import { createRouter, hashTokens } from "../../../src/workerd.js";
import { golden } from "../golden.js";
import { runSuite } from "../suite.js";

export default {
  async fetch(): Promise<Response> {
    try {
      return new Response(await runSuite({ createRouter, hashTokens, explainScenario }, golden));
    } catch (error) {
      return new Response(error instanceof Error ? error.stack : String(error), { status: 500 });
    }
  },
};
