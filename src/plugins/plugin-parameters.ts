import type { WarmrouteError } from "../core/errors.js";
import { disown, isPromise } from "../core/foreign.js";
import type { ParameterSchema, PluginParameters } from "./parameters.js";
import type { PluginSpec } from "./policy/contract.js";
import { problemsError } from "./problem.js";
import { schemaProblems } from "./schema-issues.js";

/** What `parse` threw: the parameters' fault and not the provider's. */
const refusals = new WeakSet<object>();

export const isRefusal = (error: unknown): error is WarmrouteError =>
  typeof error === "object" && error !== null && refusals.has(error);

/** The parameters of one plugin of the policy file, for its provider. */
export function pluginParameters(spec: PluginSpec, file: string | undefined): PluginParameters {
  return Object.freeze({
    raw: spec.parameters,
    parse<T>(schema: ParameterSchema<T>): T {
      const result = schema.safeParse(spec.parameters);
      if (isPromise(result)) {
        disown(result);
        throw new TypeError("the schema of the parameters answers a promise; it must not be async");
      }
      if (result.success) return result.data;
      const textOf = (path: readonly PropertyKey[]) => spec.parameterAt(path, "value").path;
      const problems = schemaProblems(result.error.issues, { input: spec.parameters, schema, textOf }).map(
        ({ code, path, of, message, suggestion }) => ({
          code,
          ...spec.parameterAt(path, of),
          message,
          ...(suggestion === undefined ? {} : { suggestion }),
          provider: spec.type,
        }),
      );
      const error = problemsError(problems, { file });
      refusals.add(error);
      throw error;
    },
  });
}
