import { parseU64 } from "../core/ids.js";
import { budgetError } from "../kernel/kernel.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
import { assertIndex } from "./construct.js";
import type { OverlapPrompt, OverlapRow } from "./contract.js";
import { checkOverlap } from "./read-request.js";

/** See `Router.overlap`. Throws `invalid_tokens`, `invalid_request`, `index_required` or `memory_budget`. */
export function overlapOf(core: SelectionCore, prompt: OverlapPrompt): OverlapRow[] {
  checkOverlap(prompt);
  assertIndex(core, "overlap()");
  core.refresh();
  const { kernel } = core;
  if ("tokens" in prompt && prompt.tokens !== undefined) {
    const n = kernel.writeTokens(prompt.tokens);
    const seed = kernel.localSeed(prompt.loraName, prompt.cacheSalt);
    return core.contents.overlap(kernel.hashPrompt(n, core.blockSize, seed));
  }
  const { blockHashes } = prompt as Extract<OverlapPrompt, { blockHashes: unknown }>;
  const blocks = blockHashes.length;
  const { locals } = kernel.roomForEvent(blocks);
  for (let i = 0; i < blocks; i++) locals[i] = parseU64(blockHashes[i], `blockHashes[${i}]`);
  if (kernel.exports.chainEvent(blocks) < 0) throw budgetError(`a chain of ${blocks} blocks`);
  return core.contents.overlap(blocks);
}
