// Where the kernel's module comes from: the inlined bytes by default, or what init() is given.
import { WarmrouteError } from "../core/errors.js";

export type KernelSource =
  | WebAssembly.Module
  | BufferSource
  | Response
  | PromiseLike<WebAssembly.Module | BufferSource | Response>;

const GIB = 2 ** 30;
/** Exports that tell the kernel from any other module. */
const needed = ["memory", "init", "decide"];

let compiled: WebAssembly.Module | undefined;
let budget = GIB;
let inlined: (() => Uint8Array<ArrayBuffer>) | undefined;

/** The entry point of a runtime that may compile code at run time offers the inlined bytes here. */
export function offerInlinedBytes(bytes: () => Uint8Array<ArrayBuffer>): void {
  inlined = bytes;
}

/** The entry point of a runtime that imports .wasm files hands over the module, and the budget that fits there. */
export function offerModule(module: WebAssembly.Module, budgetBytes: number): void {
  compiled ??= module;
  budget = budgetBytes;
}

/** Bytes that a pool may use unless the caller says otherwise. */
export function defaultBudget(): number {
  return budget;
}

/**
 * Makes the kernel ready. Idempotent, and optional where the bytes are inlined.
 * `source` is a compiled module, its bytes, or a response that carries them. Throws `kernel_missing`.
 */
export async function init(source?: KernelSource): Promise<void> {
  if (compiled || source === undefined) {
    kernelModule();
    return;
  }
  try {
    const given = await source;
    const module =
      given instanceof WebAssembly.Module
        ? given
        : await WebAssembly.compile(given instanceof Response ? await given.arrayBuffer() : given);
    const names = new Set(WebAssembly.Module.exports(module).map((one) => one.name));
    if (!needed.every((name) => names.has(name))) throw new TypeError(`a module without ${needed.join(", ")}`);
    compiled ??= module; // another call may have been faster
  } catch (cause) {
    throw new WarmrouteError("kernel_missing", `what was given is not the kernel: ${String(cause)}`, { cause });
  }
}

/** The compiled module, compiled from the inlined bytes at the first call. */
export function kernelModule(): WebAssembly.Module {
  if (!compiled) {
    if (!inlined) throw new WarmrouteError("kernel_missing", "the kernel's module was not given");
    compiled = new WebAssembly.Module(inlined());
  }
  return compiled;
}
