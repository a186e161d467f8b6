// The container of a snapshot, little-endian:
//
//   | magic "WRMS" u32 | version u32 | checksum u64 | document bytes u32 | - u32 | document, padded to 8 | records … |
//
// The document is JSON: the model, and for each pool its ranks, its bookings and how many bytes of index and
// load records follow, in order. The checksum covers everything behind it.
import { WarmrouteError } from "../core/errors.js";
import { parseJson } from "../core/json.js";
import { checksum } from "../kernel/hash.js";
import type { BookingState } from "../scheduling/bookings/booking.js";
import type { PredictionState } from "../scheduling/predictions/contract.js";

const MAGIC = 0x534d5257;
const VERSION = 1;
const HEAD = 24;
const COVERED = 16;

export interface SnapshotPool {
  /** `group/role`. */
  name: string;
  ranks: { slot: number; workerId: string; dpRank: number; incarnation?: string }[];
  bookings: BookingState[];
  /** Absent from routers that predict nothing. */
  predictions?: PredictionState[];
  indexBytes: number;
  loadBytes: number;
}

export interface SnapshotDocument {
  model: string;
  blockSize: number;
  ownNames: boolean;
  parts: string[];
  pools: SnapshotPool[];
}

export interface SnapshotContent {
  document: SnapshotDocument;
  /** Index and load records of each pool, in the document's order. */
  records: { index: Uint8Array; load: Uint8Array }[];
}

const utf8 = new TextEncoder();

/** Packs a snapshot. */
export function packSnapshot(document: SnapshotDocument, records: readonly Uint8Array[]): Uint8Array {
  const text = utf8.encode(JSON.stringify(document));
  const start = HEAD + Math.ceil(text.length / 8) * 8;
  const bytes = new Uint8Array(records.reduce((n, part) => n + part.length, start));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint32(4, VERSION, true);
  view.setUint32(16, text.length, true);
  bytes.set(text, HEAD);
  let at = start;
  for (const part of records) {
    bytes.set(part, at);
    at += part.length;
  }
  view.setBigUint64(8, checksum(bytes.subarray(COVERED)), true);
  return bytes;
}

/** Unpacks a snapshot; throws `snapshot_<reason>`. */
export function unpackSnapshot(bytes: Uint8Array): SnapshotContent {
  if (!(bytes instanceof Uint8Array)) throw bad("snapshot_magic", "a snapshot is a Uint8Array");
  if (bytes.length < HEAD) throw bad("snapshot_truncated", "there is no header");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (view.getUint32(0, true) !== MAGIC) throw bad("snapshot_magic", "these bytes are not a snapshot");
  const version = view.getUint32(4, true);
  if (version !== VERSION) throw bad("snapshot_version", `the format is version ${version}, not ${VERSION}`);
  if (view.getBigUint64(8, true) !== checksum(bytes.subarray(COVERED))) {
    throw bad("snapshot_checksum", "the content does not match its checksum");
  }
  const length = view.getUint32(16, true);
  let at = HEAD + Math.ceil(length / 8) * 8;
  if (at > bytes.length) throw bad("snapshot_truncated", "the document is cut");
  let input: unknown;
  try {
    input = parseJson(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(HEAD, HEAD + length)));
  } catch {
    throw bad("snapshot_corrupt", "the document is not JSON");
  }
  const document = readDocument(input);
  const records = document.pools.map((pool) => {
    const index = bytes.subarray(at, at + pool.indexBytes);
    const load = bytes.subarray(at + pool.indexBytes, at + pool.indexBytes + pool.loadBytes);
    at += pool.indexBytes + pool.loadBytes;
    return { index, load };
  });
  if (at !== bytes.length) throw bad("snapshot_truncated", "the records have another length than the document says");
  return { document, records };
}

function bad(
  code: "snapshot_truncated" | "snapshot_magic" | "snapshot_version" | "snapshot_checksum" | "snapshot_corrupt",
  why: string,
): WarmrouteError {
  return new WarmrouteError(code, `cannot restore: ${why}`);
}

// ---- the document, field by field

type Check = (value: unknown) => boolean;
const isText: Check = (value) => typeof value === "string";
const isFlag: Check = (value) => typeof value === "boolean";
const isU32: Check = (value) => Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 0xffffffff;
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isAmount: Check = (value) => Number.isFinite(value) && (value as number) >= 0;
const isId: Check = (value) => typeof value === "string" && /^\d{1,20}$/.test(value) && BigInt(value) < 1n << 64n;
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const shape =
  (fields: Record<string, Check>): Check =>
  (value) =>
    typeof value === "object" &&
    value !== null &&
    Object.entries(fields).every(([name, check]) => check((value as Record<string, unknown>)[name]));

const isBooking = shape({
  requestId: isText,
  id: isU32,
  generation: isU32,
  slot: isU32,
  inputTokens: isCount,
  generated: isAmount,
  expectedOutputTokens: isAmount,
});
const isPrediction = shape({
  id: isU32,
  generation: isU32,
  slot: isU32,
  ownBlocks: isCount,
  expiresInMs: optional(isAmount),
  requestId: optional(isText),
  ownTokens: isCount,
  heldBefore: isCount,
  answered: isFlag,
});
const isPool = shape({
  name: isText,
  ranks: listOf(shape({ slot: isU32, workerId: isId, dpRank: isU32, incarnation: optional(isText) })),
  bookings: listOf(isBooking),
  predictions: optional(listOf(isPrediction)),
  indexBytes: isU32,
  loadBytes: isU32,
});
const isDocument = shape({
  model: isText,
  blockSize: isU32,
  ownNames: isFlag,
  parts: listOf((value) => value === "index" || value === "load" || value === "random"),
  pools: listOf(isPool),
});

function readDocument(input: unknown): SnapshotDocument {
  if (!isDocument(input)) throw bad("snapshot_corrupt", "the document lacks a field, or one has a wrong type");
  const document = input as SnapshotDocument;
  const requestIds = document.pools.flatMap((pool) => pool.bookings.map((booking) => booking.requestId));
  for (const names of [document.pools.map((pool) => pool.name), requestIds]) {
    if (new Set(names).size !== names.length) throw bad("snapshot_corrupt", "a name stands twice in the document");
  }
  return document;
}
