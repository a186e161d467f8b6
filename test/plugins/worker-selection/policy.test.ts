import { expect, test } from "vitest";
import { WorkerSelectionPolicy } from "../../../src/plugins.js";

test.each([
  [undefined, "WorkerSelectionPolicy"],
  [{}, "label"],
  [{ label: "" }, "label"],
  [{ label: "x", filter: [] }, "filter"],
  [{ label: "x", scorer: [] }, "scorer"],
  [{ label: "x", scorers: {} }, "scorers"],
  [{ label: "x", picker: () => 0 }, "picker"],
  [{ label: "x", exclusiveAffinity: 1 }, "exclusiveAffinity"],
  [{ label: "x", onSlotReleased: 1 }, "onSlotReleased"],
  [{ label: "x", close: {} }, "close"],
])("new WorkerSelectionPolicy(%j) is invalid_plugin at %s", (options, path) => {
  expect(() => new WorkerSelectionPolicy(options as never)).toThrow(
    expect.objectContaining({ code: "invalid_plugin", path }),
  );
});
