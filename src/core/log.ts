import { disown, isPromise } from "./foreign.js";

/** Where the router and its plugins say what happened. Fields are particulars; none may hold a request's text. */
export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}

const nothing = () => {};

/** Warnings and errors to the console; what is less is dropped. */
export const consoleLogger: Logger = {
  debug: nothing,
  info: nothing,
  warn: (message, fields) => console.warn(message, ...(fields ? [fields] : [])),
  error: (message, fields) => console.error(message, ...(fields ? [fields] : [])),
};

/** A logger that never throws, whatever the host's own does: what is logged must not change what happens. */
export function quietLogger(log: Logger): Logger {
  return log instanceof QuietLogger ? log : new QuietLogger(log);
}

class QuietLogger implements Logger {
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
    // Plugins have it too.
    Object.freeze(this);
  }

  // Bound, so that a plugin can take them apart.
  readonly debug = (message: string, fields?: Record<string, unknown>) => this.#say("debug", message, fields);
  readonly info = (message: string, fields?: Record<string, unknown>) => this.#say("info", message, fields);
  readonly warn = (message: string, fields?: Record<string, unknown>) => this.#say("warn", message, fields);
  readonly error = (message: string, fields?: Record<string, unknown>) => this.#say("error", message, fields);

  #say(level: keyof Logger, message: string, fields: Record<string, unknown> | undefined): void {
    try {
      const answer: unknown = fields === undefined ? this.#log[level](message) : this.#log[level](message, fields);
      if (isPromise(answer)) disown(answer);
    } catch {
      // There is nowhere left to say it.
    }
  }
}
