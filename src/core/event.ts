import { WarmrouteError } from "./errors.js";
import { describe, parseU32, parseU64, workerIdString } from "./ids.js";
import type { StorageTier } from "./types.js";

/** A KV event with its hashes in typed arrays, ready for the kernel. */
export type ParsedEvent = { workerId: string; dpRank: number; tier: StorageTier } & (
  | { kind: "stored"; parent: bigint | null; names: BigUint64Array; locals: BigUint64Array }
  | { kind: "removed"; names: BigUint64Array }
  | { kind: "cleared" }
);

export const storageTiers: readonly string[] = ["device", "host_pinned", "disk", "external"];

function fail(path: string, wanted: string, value: unknown): never {
  throw new WarmrouteError("invalid_event", `${path} must be ${wanted}, not ${describe(value)}`, { path });
}

function object(value: unknown, path: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) fail(path, "an object", value);
  return value as Record<string, unknown>;
}

function list(value: unknown, path: string): readonly unknown[] {
  if (!Array.isArray(value)) fail(path, "a list", value);
  return value;
}

/** Reads a RouterEvent (spec: indexer.md §4.6). Throws `invalid_event` naming the field. */
export function parseEvent(input: unknown): ParsedEvent {
  const top = object(input, "event");
  const tier = top.storage_tier ?? "device";
  if (typeof tier !== "string" || !storageTiers.includes(tier))
    fail("storage_tier", `one of ${storageTiers.join(", ")}`, tier);
  const event = object(top.event, "event.event");
  const head = {
    workerId: workerIdString(top.worker_id, "worker_id", "invalid_event"),
    dpRank: parseU32(event.dp_rank ?? 0, "event.dp_rank", "invalid_event"),
    tier: tier as StorageTier,
  };
  if (event.data === "cleared") return { ...head, kind: "cleared" };
  const data = object(event.data, "event.data");
  if (data.stored !== undefined && data.removed !== undefined) {
    throw new WarmrouteError("invalid_event", "event.data has both stored and removed: send them one by one", {
      path: "event.data",
    });
  }
  if (data.stored !== undefined) {
    const stored = object(data.stored, "event.data.stored");
    const blocks = list(stored.blocks, "event.data.stored.blocks");
    const names = new BigUint64Array(blocks.length);
    const locals = new BigUint64Array(blocks.length);
    for (let i = 0; i < blocks.length; i++) {
      const path = `event.data.stored.blocks[${i}]`;
      const block = object(blocks[i], path);
      names[i] = parseU64(block.block_hash, `${path}.block_hash`, "invalid_event");
      locals[i] = parseU64(block.tokens_hash, `${path}.tokens_hash`, "invalid_event");
    }
    const parent = stored.parent_hash ?? null;
    return {
      ...head,
      kind: "stored",
      parent: parent === null ? null : parseU64(parent, "event.data.stored.parent_hash", "invalid_event"),
      names,
      locals,
    };
  }
  if (data.removed !== undefined) {
    const removed = object(data.removed, "event.data.removed");
    const hashes = list(removed.block_hashes, "event.data.removed.block_hashes");
    const names = BigUint64Array.from(hashes, (hash, i) =>
      parseU64(hash, `event.data.removed.block_hashes[${i}]`, "invalid_event"),
    );
    return { ...head, kind: "removed", names };
  }
  return fail("event.data", '{"stored"}, {"removed"} or "cleared"', event.data);
}
