// The policy file's structure: every key, its type and its range (spec: plugins.md §2). What keys ask of one another
// is in rules.ts.
import { z } from "zod";
import { workerRoles } from "../../core/types.js";
import { pluginKinds, singleKinds } from "../kinds.js";
import { identifier } from "../names.js";

const name = z.string().regex(identifier);
const count = z.int().min(0);
const parameters = z.record(z.string(), z.unknown()).exactOptional();

const bucket = z.strictObject({ min_tokens: count, bucket: name }).transform(inCamelCase);

const policyClass = z
  .strictObject({
    name,
    policy_family: name.exactOptional(),
    cache_bucket: name.exactOptional(),
    // Last come, first served is the router's own, and no choice of a file.
    queue_policy: z.enum(["fcfs", "wspt"]).default("fcfs"),
    quantum: z.int().min(1),
    prefill_busy_threshold: count.exactOptional(),
    prefill_busy_threshold_frac: z.number().min(0).exactOptional(),
    request_queue_limit_per_worker: count.exactOptional(),
    raw_isl_token_queue_limit_per_worker: count.exactOptional(),
    cached_token_queue_limit_per_worker: count.exactOptional(),
  })
  .transform(inCamelCase);

/** All or none at the root, all for a model. */
const profile = {
  default_policy_family: name.exactOptional(),
  uncached_isl_buckets: z.array(bucket).exactOptional(),
  policy_classes: z.array(policyClass).exactOptional(),
};

export const policySchema = z
  .strictObject({
    ...profile,
    models: z.record(z.string(), z.strictObject(profile).transform(inCamelCase)).default({}),
    worker_selection: z
      .strictObject({
        ...(Object.fromEntries(workerRoles.map((role) => [role, z.string().exactOptional()])) as Record<
          (typeof workerRoles)[number],
          z.ZodExactOptional<z.ZodString>
        >),
        instances: z.array(z.strictObject({ name, type: name, parameters })).default([]),
      })
      .exactOptional(),
    ...Object.fromEntries(
      singleKinds.map((kind) => [
        pluginKinds[kind].section,
        z.strictObject({ type: name, parameters }).exactOptional(),
      ]),
    ),
  })
  .transform(inCamelCase);

type CamelCase<S> = S extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelCase<Tail>>}` : S;

/** snake_case, as documents have it, to the camelCase of the code. */
function inCamelCase<T extends object>(value: T): { [K in keyof T as CamelCase<K>]: T[K] } {
  const camelCase = (key: string) => key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [camelCase(key), item])) as ReturnType<
    typeof inCamelCase<T>
  >;
}
