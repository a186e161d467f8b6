#!/usr/bin/env node
import "./kernel/inlined.js";
import { fileError, STDOUT } from "./cli/files.js";
import { main, wantsJson } from "./cli/main.js";
import { report } from "./cli/report.js";

const argv = process.argv.slice(2);

// A reader that has seen enough (`| head`) is no error; a full disk is.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  process.exit(error.code === "EPIPE" ? 0 : report(fileError("unwritable", STDOUT, error), wantsJson(argv)));
});
// There is nowhere left to say it.
process.stderr.on("error", () => {});

main(argv).then(
  (code) => {
    process.exitCode = code;
  },
  (error) => {
    console.error(error);
    process.exitCode = 70;
  },
);
