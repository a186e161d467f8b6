import costs from "../golden/costs.json" with { type: "json" };
import draws from "../golden/draws.json" with { type: "json" };
import hashes from "../golden/hashes.json" with { type: "json" };
import twoTier from "../golden/two-tier.json" with { type: "json" };
import type { Golden, GoldenScenario } from "./suite.js";

/** The golden files that the suite reads; the bundler puts them into each runtime's bundle. */
export const golden: Golden = { hashes, draws, scenarios: [...costs, ...twoTier] as GoldenScenario[] };
