import fc from "fast-check";
import { expect, test } from "vitest";
import { jsonFaultAt } from "../../src/core/json.js";

test.each([
  ["", 1, 1],
  ["  ", 1, 3],
  ["{", 1, 2],
  ["[1,]", 1, 4],
  ["[,1]", 1, 2],
  ["[1 2]", 1, 4],
  ["[1}", 1, 3],
  ['{"a"}', 1, 5],
  ['{"a":}', 1, 6],
  ['{"a":1,}', 1, 8],
  ['{"a":1]', 1, 7],
  ["{a:1}", 1, 2],
  ['{"a":1} x', 1, 9],
  ["]", 1, 1],
  ["01", 1, 2],
  ["1.", 1, 2],
  ["-", 1, 1],
  ["tru", 1, 1],
  ['"abc', 1, 5],
  ['"a\\x"', 1, 3],
  ['"a\tb"', 1, 3],
  ['{\n  "a": 1\n  "b": 2\n}', 3, 3],
  ['{"a":\r\n [true, nul]}', 2, 9],
])("%j stops being JSON at line %i, column %i", (text, line, column) => {
  expect(() => JSON.parse(text)).toThrow(SyntaxError);
  expect(jsonFaultAt(text)).toEqual({ line, column });
});

test("a document is JSON up to where it is cut or spoilt", () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(), (text, seed) => {
      // No JSON has a tilde outside its strings, so the fault is there or before it, inside of a number or a word.
      const at = seed % (text.length + 1);
      const spoilt = `${text.slice(0, at)}~${text.slice(at)}`;
      try {
        JSON.parse(spoilt);
      } catch {
        const { line, column } = jsonFaultAt(spoilt);
        expect(line).toBe(1);
        expect(column - 1).toBeLessThanOrEqual(at);
        expect(column - 1).toBeGreaterThanOrEqual(at - "false".length - 20);
      }
    }),
  );
});
