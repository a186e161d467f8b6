// Views end with the call that they were lent for: afterwards they show the next request, or nothing. Development
// builds find whoever keeps one.
import { WarmrouteError } from "../../core/errors.js";

type Method = (...args: unknown[]) => unknown;

let guarding = false;

/** Makes every view that is lent from now on throw when it is used after its call. Slow: for development and tests. */
export function guardViews(on: boolean): void {
  guarding = on;
}

/** The value itself, or what a loan makes of it. */
export function lend<T extends object>(loan: Loan | undefined, value: T): T {
  return loan ? loan.lend(value) : value;
}

/** What one component was lent for one call. */
export class Loan {
  #over = false;

  /** A loan where views are guarded, else undefined. */
  static begin(): Loan | undefined {
    return guarding ? new Loan() : undefined;
  }

  end(): void {
    this.#over = true;
  }

  /** The same object, and every array, object and function in it, until the loan ends. */
  lend<T extends object>(value: T): T {
    return new Proxy(value, {
      get: (target, key) => {
        this.#check();
        const found: unknown = Reflect.get(target, key, target);
        if (typeof found === "function") return this.#lendFunction(found as Method, target);
        return typeof found === "object" && found !== null ? this.lend(found) : found;
      },
      set: (target, key, given) => {
        this.#check();
        return Reflect.set(target, key, given, target);
      },
    });
  }

  #lendFunction(method: Method, self: object): Method {
    return (...args) => {
      this.#check();
      return method.apply(self, args);
    };
  }

  #check(): void {
    if (!this.#over) return;
    throw new WarmrouteError("policy_failed", "a component used a view after the call that it was lent for");
  }
}
