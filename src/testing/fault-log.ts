import type { Logger } from "../core/log.js";

/** Keeps warnings and errors: what the host caught of a plugin. */
export class FaultLog implements Logger {
  readonly faults: string[] = [];
  debug(): void {}
  info(): void {}

  warn(message: string): void {
    this.faults.push(message);
  }

  error(message: string, { error, cause = error }: Record<string, unknown> = {}): void {
    this.faults.push(`${message}: ${cause}`);
  }
}
