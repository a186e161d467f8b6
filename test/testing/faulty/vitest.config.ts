import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// Files that are meant to fail, so the repository's own run passes them over.
export default defineConfig({
  test: {
    root: fileURLToPath(new URL("../../..", import.meta.url)),
    include: ["test/testing/faulty/*s.ts"],
    testTimeout: 30_000,
    // They spend their time waiting.
    maxWorkers: 3,
  },
});
