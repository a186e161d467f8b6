#!/usr/bin/env node
import "./kernel/inlined.js";
import { main } from "./cli/main.js";

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error) => {
    console.error(error);
    process.exitCode = 70;
  },
);
