// Views end with the call that they were lent for: afterwards they show the next request, or nothing. Development
// builds find whoever keeps one.
import { WarmrouteError } from "../../core/errors.js";
import type { CandidateView } from "./components.js";

let guarding = false;

/** Guards every view that is lent from now on against use after its call. Slow: for development and tests. */
export function guardViews(on: boolean): void {
  guarding = on;
}

type Column = Float64Array | Uint32Array | Uint8Array;

/** A column's copy, and what the component gets of it. */
interface LentColumn {
  readonly copy: Column;
  readonly proxy: Column;
}

/**
 * What one component is lent for one call: views, and columns over copies of their own. All of it throws once the call
 * is over. For that a column is a proxy: it works as an array does, but is no typed array to `ArrayBuffer.isView` and
 * to borrowed methods (`Float64Array.prototype.fill.call`).
 */
export class Loan {
  #over = false;
  readonly #columns = new Map<Column, LentColumn>();
  readonly #guard: ProxyHandler<object>;
  readonly #columnGuard: ProxyHandler<Column>;

  constructor() {
    const traps = Object.getOwnPropertyNames(Reflect) as (keyof ProxyHandler<object>)[];
    const guarded = (trap: keyof typeof Reflect) => {
      const act = Reflect[trap] as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        this.#check();
        return act(...args);
      };
    };
    this.#guard = Object.fromEntries(traps.map((trap) => [trap, guarded(trap)]));
    // An array's getters and methods know only the array itself.
    this.#columnGuard = {
      ...this.#guard,
      get: (copy, key) => {
        this.#check();
        const value: unknown = Reflect.get(copy, key);
        return typeof value === "function" ? value.bind(copy) : value;
      },
      set: (copy, key, value) => {
        this.#check();
        return Reflect.set(copy, key, value);
      },
    };
  }

  /** A loan where views are guarded, else undefined. */
  static begin(): Loan | undefined {
    return guarding ? new Loan() : undefined;
  }

  /** The same rows, until the loan ends. */
  rows<T extends CandidateView>(rows: T): T {
    const methods = {
      workerId: (row: number) => this.#checked(() => rows.workerId(row)),
      label: (row: number, key: string) => this.#checked(() => rows.label(row, key)),
    };
    return this.#view(rows, methods) as T;
  }

  /** The same column, until the loan ends; what is written into it comes back then. */
  column<T extends Column>(column: T): T {
    let lent = this.#columns.get(column);
    if (!lent) {
      const copy = column.slice();
      lent = { copy, proxy: new Proxy(copy, this.#columnGuard) };
      this.#columns.set(column, lent);
    }
    return lent.proxy as T;
  }

  /** Ends the loan. `written` is the column that the component was to fill. */
  end(written?: Column): void {
    this.#over = true;
    // A component may have given some away itself.
    const left = [...this.#columns].filter(([, { copy }]) => copy.length > 0);
    for (const [column, { copy }] of left) if (column === written) written.set(copy);
    // What a component kept of an array itself, such as an iterator, finds nothing any more.
    structuredClone(null, { transfer: left.map(([, { copy }]) => copy.buffer as ArrayBuffer) });
  }

  #view(view: object, methods: object | null): object {
    const copy = Object.create(methods) as Record<string, unknown>;
    for (const [name, value] of Object.entries(view)) {
      if (typeof value === "function") continue;
      copy[name] = ArrayBuffer.isView(value)
        ? this.column(value as Column)
        : typeof value === "object"
          ? this.#view(value, null)
          : value;
    }
    return new Proxy(Object.freeze(copy), this.#guard);
  }

  #checked<T>(act: () => T): T {
    this.#check();
    return act();
  }

  #check(): void {
    if (!this.#over) return;
    throw new WarmrouteError("policy_failed", "a component used a view after the call that it was lent for");
  }
}
