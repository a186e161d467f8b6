// Names of types and instances, and how lists of them are written.
import { shortened } from "../core/ids.js";

/** What a family, class, bucket, instance or type may be called (spec: plugins.md §1.5). */
export const identifier = /^[A-Za-z0-9_.-]+$/;

/** Stands for what runs without a plugin, so nothing else may have this name. */
export const DEFAULT = "default";

/** Names in the order of their UTF-8 bytes, on every runtime and in every locale. */
export const sortedNames = (names: Iterable<string>): string[] => [...names].sort(byCodePoint);

/** Names as an error lists them. */
export const listed = (names: readonly string[]): string =>
  names.length === 0 ? "<none>" : names.map(shortened).join(", ");

/** The order of UTF-8 bytes is that of code points; that of JavaScript's own comparison is not, beyond U+FFFF. */
function byCodePoint(a: string, b: string): number {
  const [left, right] = [[...a], [...b]];
  const i = left.findIndex((char, at) => char !== right[at]);
  if (i < 0) return left.length - right.length;
  return left[i]!.codePointAt(0)! - (right[i]?.codePointAt(0) ?? -1);
}
