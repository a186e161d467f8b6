// Node, Deno and Bun: the entry with the kernel's bytes inside.
import { explainScenario } from "../../../src/cli/scenario.js";
import { createRouter, hashTokens } from "../../../src/index.js";
import { golden } from "../golden.js";
import { runSuite } from "../suite.js";

console.log(await runSuite({ createRouter, hashTokens, explainScenario }, golden));
