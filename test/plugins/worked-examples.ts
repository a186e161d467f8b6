/** The policy files of the spec (plugins.md §2.6). */
export const examples = {
  selection: `worker_selection:
  prefill: hot-cache
  decode: spread
  aggregated: default
  instances:
    - name: hot-cache
      type: dynamo-two-tier-cost-fn
      parameters: {cache_threshold: 0.25}
    - name: spread
      type: dynamo-two-tier-cost-fn
      parameters: {cache_threshold: 1.0, balance_abs_threshold: 4}
`,
  classifier: `request_classifier:
  type: per-session-gate
  parameters:
    max_parallel: 1
`,
  queues: `default_policy_family: regular
uncached_isl_buckets:
  - {min_tokens: 0, bucket: warm}
  - {min_tokens: 2048, bucket: cold}
policy_classes:
  - {name: reg_warm, policy_family: regular, cache_bucket: warm, queue_policy: wspt, quantum: 2048, prefill_busy_threshold_frac: 16.0}
  - {name: reg_cold, policy_family: regular, cache_bucket: cold, quantum: 512, prefill_busy_threshold_frac: 16.0, request_queue_limit_per_worker: 64}
  - {name: vip, quantum: 4096, prefill_busy_threshold_frac: 16.0}
models:
  org/big-model:
    default_policy_family: only
    uncached_isl_buckets: [{min_tokens: 0, bucket: all}]
    policy_classes:
      - {name: only_all, policy_family: only, cache_bucket: all, quantum: 1024}
`,
} as const;
