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
