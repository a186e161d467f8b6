import { type FileHandle, open } from "node:fs/promises";
import { WarmrouteError } from "../../core/errors.js";
import type { RouterPolicy } from "../../plugins/policy/contract.js";
import { mostPolicyBytes, parsePolicy } from "../../plugins/policy/parse.js";

/** Reads a policy file. Throws `unreadable`, and what `parsePolicy` throws. */
export async function loadPolicy(path: string): Promise<RouterPolicy> {
  return await parsePolicy(await firstBytes(path, mostPolicyBytes + 1), { file: path });
}

/** At most so many bytes of a file, whatever its size: a device may have no end. */
async function firstBytes(path: string, most: number): Promise<Uint8Array> {
  let file: FileHandle | undefined;
  try {
    file = await open(path);
    const bytes = new Uint8Array(most);
    let length = 0;
    while (length < most) {
      const { bytesRead } = await file.read(bytes, length, most - length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return bytes.subarray(0, length);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new WarmrouteError("unreadable", `cannot read the policy file ${path}: ${reason}`, { path, cause });
  } finally {
    await file?.close();
  }
}
