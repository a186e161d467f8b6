// JSON whose integers may exceed 2^53: hashes and worker ids are u64 at every edge.

const stringOrLongInteger = /"(?:[^"\\]|\\.)*"|(?<![\d.eE+-])-?\d{16,}(?![\d.eE])/g;

/** JSON.parse that keeps integers of 16 digits and more as decimal strings, so that no bit is lost. */
export function parseJson(text: string): unknown {
  return JSON.parse(text.replace(stringOrLongInteger, (token) => (token.startsWith('"') ? token : `"${token}"`)));
}
