import { disown, isPromise } from "../../core/foreign.js";

/**
 * A signal for a plugin, whose listeners cannot hurt the host: what they throw goes to `failed`. The platform would
 * report it as an exception that nobody caught, which ends a process.
 */
export function guardListeners(signal: AbortSignal, failed: (cause: unknown) => void): AbortSignal {
  const guards = new WeakMap<object, (event: Event) => void>();
  const guarded = (listener: EventListenerOrEventListenerObject): EventListenerOrEventListenerObject => {
    // What is no listener the platform refuses.
    if (listener === null || (typeof listener !== "function" && typeof listener !== "object")) return listener;
    let guard = guards.get(listener);
    if (!guard) {
      guard = (event) => {
        try {
          const answer: unknown =
            typeof listener === "function" ? listener.call(signal, event) : listener.handleEvent(event);
          if (isPromise(answer)) disown(answer, failed);
        } catch (cause) {
          failed(cause);
        }
      };
      guards.set(listener, guard);
    }
    return guard;
  };
  const { addEventListener, removeEventListener } = signal;
  let onabort: ((event: Event) => void) | null = null;
  Object.defineProperties(signal, {
    addEventListener: {
      value: (type: string, listener: EventListener, options?: AddEventListenerOptions) =>
        addEventListener.call(signal, type, guarded(listener), options),
    },
    removeEventListener: {
      value: (type: string, listener: EventListener, options?: EventListenerOptions) =>
        removeEventListener.call(signal, type, guarded(listener), options),
    },
    onabort: {
      get: () => onabort,
      set: (listener: unknown) => {
        if (onabort) removeEventListener.call(signal, "abort", guarded(onabort));
        onabort = typeof listener === "function" ? (listener as typeof onabort) : null;
        if (onabort) addEventListener.call(signal, "abort", guarded(onabort));
      },
    },
  });
  return signal;
}
