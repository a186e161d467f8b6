// Waiting in tests, with an end.
// The timers of the platform, also where a test has faked those that its plugin sees.
const { setTimeout, clearTimeout, performance } = globalThis;
const now = performance.now.bind(performance);

/** Milliseconds that nothing takes which does not hang. */
export const PATIENCE_MS = 2000;

/** Whether a promise is settled in time. */
export async function within(promise: Promise<unknown>, ms = PATIENCE_MS): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false);
  });
  const done = promise.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([done, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether something holds in time. */
export async function until(holds: () => boolean, ms = PATIENCE_MS): Promise<boolean> {
  for (const start = now(); !holds(); await sleep(2)) if (now() - start > ms) return false;
  return true;
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
