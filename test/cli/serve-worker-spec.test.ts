import { describe, expect, test } from "vitest";
import { parseWorkerSpecs } from "../../src/cli/worker-spec.js";

describe("a worker SPEC", () => {
  test("is a URL, and is numbered in order past the ids taken", () => {
    expect(parseWorkerSpecs(["http://a:1", "http://b:2,id=1", "https://c/v1"])).toEqual([
      { workerId: "2", url: "http://a:1" },
      { workerId: "1", url: "http://b:2" },
      { workerId: "3", url: "https://c/v1" },
    ]);
  });

  test("may set role, engine, ranks and an id of 64 bits", () => {
    expect(parseWorkerSpecs(["http://a,id=18446744073709551615,role=prefill,engine=vllm,dp=4"])).toEqual([
      { workerId: "18446744073709551615", url: "http://a", role: "prefill", engine: "vllm", dpSize: 4 },
    ]);
  });

  test.each([
    ["localhost:8000", "http://"],
    ["ftp://a", "http://"],
    ["http://", "http://"],
    ["", "http://"],
    ["http://a,rol=decode", "unknown key rol"],
    ["http://a,constructor=1", "unknown key constructor"],
    ["http://a,", "unknown key"],
    ["http://a,role=chef", "role must be one of aggregated, prefill, decode, encode"],
    ["http://a,engine", "engine must be one of"],
    ["http://a,dp=0", "dp must be a whole number"],
    ["http://a,dp=1.5", "dp must be a whole number"],
    ["http://a,id=x", "id is not a 64-bit integer"],
  ])("%s is refused", (spec, reason) => {
    expect(() => parseWorkerSpecs([spec])).toThrowError(
      expect.objectContaining({ code: "invalid_usage", message: expect.stringContaining(reason) }),
    );
  });

  test("may not repeat an id", () => {
    expect(() => parseWorkerSpecs(["http://a,id=7", "http://b,id=07"])).toThrow("two workers have the id 7");
  });
});
