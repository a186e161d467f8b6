// JSON whose integers may exceed 2^53: hashes and worker ids are u64 at every edge.

const stringOrLongInteger = /"(?:[^"\\]|\\.)*"|(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

/** JSON.parse that keeps integers of 16 digits and more as decimal strings, so that no bit is lost. */
export function parseJson(text: string): unknown {
  return JSON.parse(text.replace(stringOrLongInteger, (token) => (token.startsWith('"') ? token : `"${token}"`)));
}

const space = /[ \t\n\r]*/y;
const scalar = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
// As far as it is right: the quote that ends it is looked for afterwards.
const text = /"(?:[ !#-[\]-\uffff]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*/y;

/** Where a text stops being JSON: line and column, counted from 1. For a text that JSON.parse refuses. */
export function jsonFaultAt(json: string): { line: number; column: number } {
  const before = json.slice(0, faultOffset(json));
  return { line: before.split("\n").length, column: before.length - before.lastIndexOf("\n") };
}

/** What may come next (RFC 8259). */
type Next = "value" | "value or ]" | "key" | "key or }" | "colon" | "rest";

function faultOffset(json: string): number {
  const open: ("{" | "[")[] = [];
  let next: Next = "value";
  let at = 0;
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    if (!pattern.test(json)) return false;
    at = pattern.lastIndex;
    return true;
  };
  const string = (): boolean => skip(text) && json[at] === '"' && ++at > 0;
  for (;;) {
    skip(space);
    const inside = open.at(-1);
    const char = json[at];
    const closes: string = (next === "rest" && inside === "{") || next === "key or }" ? "}" : "]";
    if (char === closes && inside !== undefined && next !== "value" && next !== "key" && next !== "colon") {
      open.pop();
      at++;
      next = "rest";
    } else if (next === "rest") {
      if (char !== "," || inside === undefined) return at;
      at++;
      next = inside === "{" ? "key" : "value";
    } else if (next === "colon") {
      if (char !== ":") return at;
      at++;
      next = "value";
    } else if (next === "key" || next === "key or }") {
      if (!string()) return at;
      next = "colon";
    } else if (char === "{" || char === "[") {
      open.push(char);
      at++;
      next = char === "{" ? "key or }" : "value or ]";
    } else {
      if (!(char === '"' ? string() : skip(scalar))) return at;
      next = "rest";
    }
  }
}
