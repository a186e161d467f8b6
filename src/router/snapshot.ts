import { WarmrouteError } from "../core/errors.js";
import type { Kernel } from "../kernel/kernel.js";
import type { SelectionCore } from "../scheduling/selection-core.js";
import type { SnapshotPart } from "./contract.js";

export function writeSnapshot(
  _model: string,
  _pools: Map<string, SelectionCore>,
  _parts: readonly SnapshotPart[],
): Uint8Array {
  throw new WarmrouteError("snapshot_version", "not yet");
}
export function readSnapshot(
  _bytes: Uint8Array,
  _model: string,
  _pools: Map<string, SelectionCore>,
  _kernel: (pool: string) => Kernel,
  _parts: readonly SnapshotPart[],
): void {
  throw new WarmrouteError("snapshot_version", "not yet");
}
