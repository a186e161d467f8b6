import { describe, expect, test } from "vitest";
import { Random } from "../../src/core/random.js";
import { Prompts } from "../../src/replay/prompts.js";
import { readTrace, type Trace } from "../../src/replay/trace.js";

/** Random prompts with many common beginnings, some of them cut. */
function branchingTrace(seed: bigint, requests: number): Promise<Trace> {
  const random = new Random(seed);
  const lines = Array.from({ length: requests }, () => {
    const hashIds = Array.from({ length: random.between(1, 5) }, () => random.below(3));
    const most = hashIds.length * 512;
    return JSON.stringify({ input_length: random.between(most - 511, most), output_length: 1, hash_ids: hashIds });
  });
  return readTrace(lines);
}

test("tokens are each hash id 512 times, cut to the input length", async () => {
  const trace = await readTrace(['{"input_length": 514, "output_length": 1, "hash_ids": [30, 31]}']);
  const tokens = new Prompts(trace, 64).tokens(0);
  expect(tokens).toHaveLength(514);
  expect(tokens.subarray(0, 512).every((token) => token === 0)).toBe(true);
  expect([...tokens.subarray(512)]).toEqual([1, 1]);
});

describe.each([1, 16, 48, 64, 500, 512, 700, 1024])("engine blocks of %i tokens", (blockSize) => {
  test("block ids are equal exactly where the tokens from the start on are", async () => {
    const trace = await branchingTrace(3n, 60);
    const prompts = new Prompts(trace, blockSize);
    const contentOf = new Map<number, string>();
    const idOf = new Map<string, number>();
    for (let request = 0; request < trace.requests.length; request++) {
      const tokens = prompts.tokens(request);
      const blocks = prompts.blocks[request]!;
      expect(blocks).toHaveLength(Math.floor(tokens.length / blockSize));
      blocks.forEach((id, i) => {
        // Tokens are runs, so a block is described by where in it the token changes, after the block before it.
        let content = `${blocks[i - 1]}:`;
        const block = tokens.subarray(i * blockSize, (i + 1) * blockSize);
        for (let j = 0; j < block.length; j++) if (j === 0 || block[j] !== block[j - 1]) content += `${block[j]}@${j},`;
        expect(contentOf.get(id) ?? content).toBe(content);
        expect(idOf.get(content) ?? id).toBe(id);
        contentOf.set(id, content);
        idOf.set(content, id);
        expect(id).toBeLessThan(prompts.distinctBlocks);
      });
    }
  });
});

test("reusable tokens are those of leading blocks seen before, the last token never being one", async () => {
  const trace = await readTrace([
    '{"input_length": 1024, "output_length": 1, "hash_ids": [1, 2]}',
    '{"input_length": 1024, "output_length": 1, "hash_ids": [1, 2]}',
    '{"input_length": 1000, "output_length": 1, "hash_ids": [1, 3]}',
    '{"input_length": 1000, "output_length": 1, "hash_ids": [3, 1]}',
  ]);
  const prompts = new Prompts(trace, 64);
  expect(prompts.inputTokens).toBe(4048);
  expect(prompts.reusableTokens).toBe(960 + 512);
});
