import { expect } from "vitest";
import { WarmrouteError } from "../../src/core/errors.js";

/** The error that a call throws or rejects with, which must be one of the project's. */
export async function refusal(call: () => unknown): Promise<WarmrouteError> {
  try {
    await call();
  } catch (error) {
    expect(error).toBeInstanceOf(WarmrouteError);
    return error as WarmrouteError;
  }
  return expect.fail("nothing was refused");
}
