import "./kernel/inlined.js";

export * from "./exports.js";
