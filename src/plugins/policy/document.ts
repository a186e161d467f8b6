// A YAML document as plain frozen values, with the place of everything in it.
import {
  Composer,
  type CST,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  Parser,
  type Scalar,
} from "yaml";
import type { ErrorCode } from "../../core/errors.js";
import { shortened } from "../../core/ids.js";
import { type PolicyProblem, pathText } from "../problem.js";
import { unknownKey } from "../schema-issues.js";
import type { Place } from "./contract.js";

// A thousand models fit; more is no policy file. The bounds hold the time that a hostile one takes below a second.
const mostTokens = 150_000;
const mostValues = 100_000;
const deepest = 64;

/** A value, and where it and its parts stand; offsets into the text. */
interface Located {
  readonly value: unknown;
  readonly at: number;
  /** Values in it, itself included, aliases counted as what they stand for. */
  readonly size: number;
  /** Levels in it, a single value being none. */
  readonly depth: number;
  readonly entries?: ReadonlyMap<string, Entry>;
  readonly items?: readonly Located[];
}

interface Entry {
  readonly keyAt: number;
  readonly node: Located;
}

/** A parsed document: its value, and the place of each path. */
export interface PolicyDocument {
  readonly value: unknown;
  /** Whether nothing is written in it. */
  readonly isEmpty: boolean;
  /** The place of a key or a value; of the mapping, for a key that it lacks. */
  place(path: readonly PropertyKey[], of: "key" | "value"): Place;
}

/** Reads one document. Duplicate keys are found with all else; what is no YAML ends the reading at the first fault. */
export function readDocument(text: string): { document?: PolicyDocument; problems: PolicyProblem[] } {
  const lines = new LineCounter();
  const position = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  try {
    const contents = contentsOf(text, lines);
    const reader = new Reader();
    const root = reader.read(contents, 0, []);
    const place = (path: readonly PropertyKey[], of: "key" | "value"): Place => ({
      path: pathText(path),
      ...position(offsetOf(root, path, of)),
    });
    const problems = reader.problems.map(({ offset, ...problem }) => ({ ...problem, ...position(offset) }));
    return { document: { value: root.value, isEmpty: contents === null || isUnwritten(contents), place }, problems };
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
    const { code, offset, message } = error;
    return { problems: [{ code, path: "", ...position(offset), message }] };
  }
}

/** The parsed content of a text with one document. */
function contentsOf(text: string, lines: LineCounter): Node | null {
  const composer = new Composer({
    schema: "core",
    merge: false,
    resolveKnownTags: false,
    stringKeys: true,
    // Its own search for duplicates takes the square of the keys.
    uniqueKeys: false,
  });
  let first: Document.Parsed | undefined;
  for (const document of composer.compose(shallowTokens(text, lines), true, text.length)) {
    if (first)
      throw new Stop("syntax", document.range[0], "a policy file holds one document; here a second one begins");
    const [fault] = [...document.errors, ...document.warnings].sort((a, b) => a.pos[0] - b.pos[0]);
    if (fault)
      throw new Stop("syntax", fault.pos[0], messages[fault.code] ?? `this is no YAML: ${shortened(fault.message)}`);
    first = document;
  }
  return (first?.contents ?? null) as Node | null;
}

/** The syntax tree, checked before it is composed: that goes as deep as the text does, whatever the stack holds. */
function shallowTokens(text: string, lines: LineCounter): CST.Token[] {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  const tokens: CST.Token[] = [];
  let count = 0;
  for (const lexeme of new Lexer().lex(text)) {
    if (++count > mostTokens)
      throw new Stop(
        "out_of_range",
        parser.offset,
        `the policy file is too large: it has more than ${mostTokens} symbols`,
      );
    tokens.push(...parser.next(lexeme));
  }
  tokens.push(...parser.end());
  checkTree(tokens);
  return tokens;
}

/** What the composer would not survive, or would report at the end of the file instead of where it begins. */
function checkTree(tokens: readonly CST.Token[]): void {
  let unclosed: { offset: number; sign: string } | undefined;
  const open: { token: CST.Token | null | undefined; depth: number }[] = tokens.map((token) => ({ token, depth: 0 }));
  for (let next = open.pop(); next; next = open.pop()) {
    const { token, depth } = next;
    if (token?.type === "document") open.push({ token: token.value, depth });
    const sign = token && openSign(token);
    // The innermost is the likeliest to have been forgotten.
    if (sign && token.offset >= (unclosed?.offset ?? 0)) unclosed = { offset: token.offset, sign };
    if (!token || !("items" in token)) continue;
    if (depth === deepest) throw new Stop("syntax", token.offset, tooDeep);
    for (const { key, value } of token.items) {
      open.push({ token: key, depth: depth + 1 }, { token: value, depth: depth + 1 });
    }
  }
  if (unclosed) throw new Stop("syntax", unclosed.offset, `this ${unclosed.sign} is never closed`);
}

/** The sign that opens a quote or a flow collection which nothing closes. */
function openSign(token: CST.Token): string | undefined {
  if (token.type === "flow-collection") {
    const { source: start } = token.start;
    return token.end[0]?.source === (start === "{" ? "}" : "]") ? undefined : start;
  }
  if (token.type !== "single-quoted-scalar" && token.type !== "double-quoted-scalar") return undefined;
  const { source } = token;
  return source.length === 1 || source.at(-1) !== source[0] ? source[0] : undefined;
}

const tooDeep = `this is nested deeper than ${deepest} levels`;
const messages: Record<string, string> = { NON_STRING_KEY: "a key must be a string" };

/** Ends the reading of a document. */
class Stop extends Error {
  constructor(
    readonly code: ErrorCode,
    readonly offset: number,
    message: string,
  ) {
    super(message);
  }
}

class Reader {
  readonly problems: (PolicyProblem & { offset: number })[] = [];
  /** What each anchor stands for; undefined while its value is still being read. */
  readonly #anchors = new Map<string, Located | undefined>();
  #count = 0;

  /** `keyAt` is the place of the key, which stands for a value that is not written. */
  read(node: Node | null, keyAt: number, path: readonly PropertyKey[]): Located {
    if (node === null) return unwritten(keyAt);
    const at = node.range?.[0] ?? keyAt;
    if (isAlias(node)) return this.#limited(this.#aliased(node.source, at));
    const { anchor } = node as { anchor?: string };
    if (anchor !== undefined) this.#anchors.set(anchor, undefined);
    const located = isUnwritten(node) ? unwritten(keyAt) : this.#limited(this.#content(node, at, path));
    if (anchor !== undefined) this.#anchors.set(anchor, located);
    return located;
  }

  #content(node: Node, at: number, path: readonly PropertyKey[]): Located {
    if (isScalar(node)) return { value: scalarValue(node), at, size: 1, depth: 0 };
    if (isSeq<Node>(node)) {
      const items = node.items.map((item, i) => this.read(item, at, [...path, i]));
      return { value: Object.freeze(items.map(({ value }) => value)), at, ...extent(items), items };
    }
    if (!isMap<Scalar, Node>(node)) throw new Stop("syntax", at, "this is neither a value, a list nor a mapping");
    const entries = new Map<string, Entry>();
    for (const { key, value } of node.items) {
      const name = String(key.value);
      const keyAt = key.range?.[0] ?? at;
      const keyPath = [...path, name];
      const entry = { keyAt, node: this.read(value, keyAt, keyPath) };
      if (entries.has(name)) {
        const message = `${shortened(pathText(keyPath))} is given twice`;
        this.problems.push({ code: "duplicate_key", path: pathText(keyPath), message, offset: keyAt });
      } else if (name === "<<" || name === "__proto__") {
        const { code, message } = unknownKey(keyPath, [], pathText);
        this.problems.push({ code, path: pathText(keyPath), message, offset: keyAt });
      } else entries.set(name, entry);
    }
    const value = Object.freeze(Object.fromEntries([...entries].map(([name, entry]) => [name, entry.node.value])));
    return { value, at, ...extent([...entries.values()].map((entry) => entry.node)), entries };
  }

  #aliased(name: string, at: number): Located {
    const target = this.#anchors.get(name);
    if (target) return target;
    const fault = this.#anchors.has(name) ? "stands within what it stands for" : "has no anchor before it";
    throw new Stop("syntax", at, `the alias *${shortened(name)} ${fault}`);
  }

  /** Aliases are not copied, but whoever walks the value meets each again. */
  #limited(located: Located): Located {
    this.#count++;
    if (this.#count > mostValues || located.size > mostValues) {
      throw new Stop("out_of_range", located.at, `a policy file holds at most ${mostValues} values, aliases expanded`);
    }
    if (located.depth > deepest) throw new Stop("syntax", located.at, tooDeep);
    return located;
  }
}

const extent = (parts: readonly Located[]) =>
  parts.reduce((all, part) => ({ size: all.size + part.size, depth: Math.max(all.depth, part.depth + 1) }), {
    size: 1,
    depth: 1,
  });

/** What stands where nothing does. */
const unwritten = (at: number): Located => ({ value: null, at, size: 1, depth: 0 });

const isUnwritten = (node: Node): boolean => isScalar(node) && node.value === null && node.source === "";

/** Integers beyond 2^53 as their digits, as in JSON: no bit is lost. */
function scalarValue({ value, source }: Scalar): unknown {
  if (typeof value !== "number") return value;
  if (!Number.isSafeInteger(value) && /^[-+]?\d+$|^0[ox]/.test(source ?? "")) {
    return BigInt(source!).toString();
  }
  // −0, which nobody means.
  return value === 0 ? 0 : value;
}

function offsetOf(root: Located, path: readonly PropertyKey[], of: "key" | "value"): number {
  let node = root;
  let keyAt = root.at;
  for (const key of path) {
    const entry = node.entries?.get(String(key));
    const next = entry?.node ?? (typeof key === "number" ? node.items?.[key] : undefined);
    if (!next) return node.at;
    node = next;
    keyAt = entry?.keyAt ?? next.at;
  }
  return of === "key" ? keyAt : node.at;
}
