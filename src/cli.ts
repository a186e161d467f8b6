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

/** Ends the process once all is written, although a plugin's timers may still run. */
const end = (code: number) => {
  // A failure is an `error` of the stream, too, which ends the process above.
  process.stdout.write("", (failed) => failed ?? process.stderr.write("", () => process.exit(code)));
};

main(argv).then(end, (error) => {
  console.error(error);
  end(70);
});
