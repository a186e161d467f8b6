import type { Logger } from "../core/log.js";

/** Keeps the messages of the level `error`: what the host caught of a plugin. */
export class ErrorLog implements Logger {
  readonly errors: string[] = [];
  debug(): void {}
  info(): void {}
  warn(): void {}
  error(message: string, { error, cause = error }: Record<string, unknown> = {}): void {
    this.errors.push(`${message}: ${cause}`);
  }
}
