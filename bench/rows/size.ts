// What the module costs to ship.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { kernelPath } from "../locate.js";
import { measure, type Suite } from "../rows.js";

export const sizeSuite: Suite = {
  rows: [
    {
      name: "kernel/size",
      of: "bytes of the release module, gzip -9",
      against: "bytes",
      better: "lower",
      statistic: "median",
      target: 20_000,
      aim: 10_000,
    },
  ],
  run: (run) =>
    measure(run, "kernel/size", () => {
      const bytes = gzipSync(readFileSync(kernelPath()), { level: 9 }).length;
      return { ratio: bytes, samples: [bytes] };
    }),
};
