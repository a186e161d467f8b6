/** One thing wrong with a plugin's parameters, as zod reports it. */
export interface ParameterIssue {
  readonly code?: string;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  /** The keys that the schema does not know. */
  readonly keys?: readonly string[];
  /** Those that it does know, for a suggestion; zod's need not say. */
  readonly known?: readonly string[];
}

/** What `parse` needs of a schema; every zod schema has it. */
export interface ParameterSchema<T> {
  safeParse(
    input: unknown,
  ):
    | { readonly success: true; readonly data: T }
    | { readonly success: false; readonly error: { readonly issues: readonly ParameterIssue[] } };
}

/** The `parameters` of one instance of the policy file, as a provider gets them. */
export interface PluginParameters {
  /** The mapping as written; frozen. */
  readonly raw: Readonly<Record<string, unknown>>;
  /**
   * The parameters in the plugin's own type. What the schema refuses becomes an error with the place in the
   * policy file; let it pass through.
   */
  parse<T>(schema: ParameterSchema<T>): T;
}
