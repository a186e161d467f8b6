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

  test("may set labels, which policies read", () => {
    expect(parseWorkerSpecs(["http://a,label.zone=east,label.a.b==x"])).toEqual([
      { workerId: "1", url: "http://a", labels: { zone: "east", "a.b": "=x" } },
    ]);
  });

  test.each([
    ["http://a,label.zone", "label.zone needs a value"],
    ["http://a,label.=x", "unknown key label."],
    ["http://a,label.z=1,label.z=2", "label.z is given twice"],
    ["localhost:8000", "http://"],
    ["ftp://a", "http://"],
    ["http://", "http://"],
    ["", "http://"],
    ["http://a,rol=decode", "unknown key rol"],
    ["http://a,constructor=1", "unknown key constructor"],
    ["http://a,", "nothing follows a comma"],
    ["http://a,,id=1", "nothing follows a comma"],
    ["http://a,id=1,dp=2,id=1", "id is given twice"],
    ["http://a?x=1", "must not have a query"],
    ["http://a/b?", "must not have a query"],
    ["http://a#y", "or a fragment"],
    ["http://u@a", "must not hold credentials"],
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

  test.each(["http://u:secret@a/base?x=1#y", "http://:secret@a,id=1", "u:secret@a", "http://u:secret@a b"])(
    "%s is refused without its password being told",
    (spec) => {
      let message = "";
      try {
        parseWorkerSpecs([spec]);
      } catch (error) {
        message = (error as Error).message;
      }
      expect(message).toMatch(/must not hold credentials|must begin with/);
      expect(message).not.toContain("secret");
    },
  );

  test.each([
    ["http://a:80/", "http://A"],
    ["http://a/v1", "http://a"],
    ["http://a", "http://a,id=9"],
  ])("may not name one server twice: %s and %s", (one, other) => {
    expect(() => parseWorkerSpecs([one, other])).toThrow("two workers have the URL http://a");
  });

  test("may not repeat an id", () => {
    expect(() => parseWorkerSpecs(["http://a,id=7", "http://b,id=07"])).toThrow("two workers have the id 7");
  });
});
