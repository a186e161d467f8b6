import type { Command } from "commander";
import { WarmrouteError } from "../core/errors.js";
import { hashTokens } from "../kernel/hash.js";
import { readJsonInput } from "./input.js";
import { usageError, wholeOption } from "./options.js";

/** `warmroute hash`: token ids → block and sequence hashes, as decimal strings. */
export function registerHash(program: Command): void {
  program
    .command("hash")
    .description("hash the blocks of a prompt: a JSON array of token ids, from a file or standard input")
    .argument("[file]", "JSON array of token ids; - or nothing reads standard input")
    // Not a required option: commander would miss it before it names a misspelt one.
    .option("--block-size <tokens>", "tokens a block (required)")
    .option("--lora <name>", "adapter name")
    .option("--salt <text>", "cache salt")
    .option("--json", "the default")
    .action((file: string | undefined, options: { blockSize?: string; lora?: string; salt?: string }) => {
      if (options.blockSize === undefined) throw usageError("--block-size", "--block-size is missing");
      const blockSize = wholeOption("--block-size", options.blockSize, 1_048_576);
      const tokens = readJsonInput(file, "invalid_tokens");
      if (!Array.isArray(tokens)) {
        throw new WarmrouteError("invalid_tokens", "the input is not a JSON array of token ids", { path: "tokens" });
      }
      const { blockHashes, sequenceHashes } = hashTokens(tokens as number[], blockSize, {
        ...(options.lora === undefined ? {} : { loraName: options.lora }),
        ...(options.salt === undefined ? {} : { cacheSalt: options.salt }),
      });
      const document = {
        block_hashes: Array.from(blockHashes, String),
        sequence_hashes: Array.from(sequenceHashes, String),
      };
      process.stdout.write(`${JSON.stringify(document)}\n`);
    });
}
