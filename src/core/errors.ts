/**
 * Every code that a caller can meet, with the HTTP status it maps to and how to mend it.
 * One table: the documentation and the HTTP layers read it too.
 */
export const errorCodes = {
  no_endpoints: [503, "Add a worker that may serve this request, or relax its constraints."],
  all_eligible_workers_overloaded: [429, "Every worker that may serve this request is overloaded; retry later."],
  all_eligible_workers_filtered: [503, "The policy's filters left no worker; check the filters."],
  pinned_worker_not_allowed: [400, "Pin a worker that is in allowedWorkerIds, or drop one of the two."],
  pinned_worker_overloaded: [429, "The pinned worker is overloaded; retry later or drop the pin."],
  duplicate_request: [409, "Use another request id, or end the live booking of this one first."],
  invalid_tokens: [400, "Pass token ids: integers from 0 to 4294967295, in a Uint32Array or an array."],
  invalid_block_size: [400, "Use a whole number of tokens from 1 to 1048576 as the block size."],
  invalid_config: [400, "See docs/configuration.md for the fields and their ranges."],
  invalid_request: [400, "Correct the named field."],
  invalid_event: [400, "Correct the named field of the event."],
  invalid_worker: [400, "Correct the named field of the worker record."],
  invalid_scenario: [400, "Correct the named field of the scenario."],
  invalid_trace: [400, "Correct the named line of the trace."],
  invalid_usage: [400, "Run the command with --help."],
  unreadable: [400, "Check that the file exists and can be read."],
  unwritable: [400, "Check that the directory exists or can be made, and can be written."],
  syntax: [400, "Correct the YAML at the named place."],
  duplicate_key: [400, "Give each key of a mapping once."],
  unknown_key: [400, "Remove the key, or correct its name; docs/policy-file.md lists all."],
  missing_key: [400, "Add the named key."],
  invalid_type: [400, "Write a value of the named type."],
  out_of_range: [400, "Use a value in the named range."],
  bad_identifier: [400, "Use ASCII letters, digits, _, . and - only, at least one."],
  duplicate_name: [400, "Give each a name of its own."],
  reserved_default: [400, "Use another name: default stands for what runs without a plugin."],
  unknown_type: [400, "Use a registered type; warmroute check --types lists them. Or load the catalog that has it."],
  unknown_reference: [400, "Name something that the policy file defines."],
  unknown_instance: [400, "Name an instance of the policy file's worker_selection, or default."],
  empty_section: [400, "Fill the section, or leave it out."],
  incomplete_profile: [400, "Give default_policy_family, uncached_isl_buckets and policy_classes together."],
  not_increasing: [400, "Order the buckets by min_tokens, each higher than the one before."],
  incomplete_matrix: [400, "Add a class for the named family and bucket."],
  duplicate_cell: [400, "Keep one class for each family and bucket."],
  name_clash: [400, "Rename the class, or the family."],
  unsupported_value: [400, "Use one of the named values."],
  empty_name: [400, "Register the plugin under a name."],
  duplicate: [400, "Register each type once: a catalog cannot replace a type that is there."],
  missing_default: [500, "Make the registry with createRegistry(), which knows the built-in policy."],
  provider: [400, "Correct the parameters that the plugin names, or the plugin."],
  invalid_plugin: [500, "Return what the plugin contract asks for; docs/plugins.md shows it."],
  unknown_worker: [404, "Add the worker first, or use an id that router.loads() lists."],
  model_not_found: [404, "Use a model that /v1/models lists."],
  too_many_ranks: [507, "Raise maxRanks (at most 16384), or split the workers over several routers."],
  index_required: [400, "Choose a policy that reads caches, or drop the option that needs the index."],
  role_not_served: [400, "Drop the policy or the worker of this role, or use createRouter, which serves every role."],
  classifier_not_supported: [400, "Drop request_classifier from the policy file, or serve it with the HTTP frontend."],
  classifier_not_installed: [400, "Resolve the policy file with a registry, and pass the bundle as plugins."],
  no_catalog_installed: [400, "Give the catalog that registers this type (--catalog, or createRegistry(catalog))."],
  already_started: [400, "Do this before the first router is built, or once only."],
  memory_budget: [507, "Raise memoryBudgetBytes, or remove workers or blocks."],
  kernel_failed: [500, "This pool's kernel trapped: please report it. Close the router and create a new one."],
  kernel_missing: [500, "Call init() with the kernel's module before creating a router."],
  snapshot_magic: [400, "Pass the bytes that snapshot() returned."],
  snapshot_version: [400, "Make the snapshot with the same major version of warmroute."],
  snapshot_checksum: [400, "The bytes were changed or cut; make a new snapshot."],
  snapshot_truncated: [400, "The bytes were cut; make a new snapshot."],
  snapshot_mismatch: [400, "Restore what the snapshot has, into a router that fits it; the message says what differs."],
  snapshot_corrupt: [400, "The snapshot's content contradicts itself; make a new one."],
  queue_rejected: [429, "The class's queue is full; retry later, or raise its queue limits in the policy file."],
  deadline_exceeded: [429, "The request was due before it could be served; retry with more time."],
  classify_timeout: [429, "The request classifier did not answer in time; retry later, or raise classify_timeout_ms."],
  classify_pending_limit: [
    429,
    "Too many requests wait for the request classifier; retry later, or raise max_pending.",
  ],
  lifecycle_ended: [409, "The request ended while it was being classified; send it anew."],
  lifecycle_required: [400, "Give a requestId, or lifecycle: false to select without the request classifier."],
  request_classifier_failed: [500, "The request classifier threw; the router's log has its error."],
  invalid_classification_metadata: [500, "The request classifier gave an answer that is refused; the log says why."],
  policy_failed: [500, "A component of the worker-selection policy failed; the cause has its error."],
  non_finite_cost: [500, "Write a finite cost for every row in the scorer that details name."],
  invalid_picker_row: [500, "Return a row from 0 to the number of candidates less one in the picker."],
  upstream_failed: [502, "Check that the worker runs and can be reached; the message names it."],
  cannot_listen: [500, "Choose an address of this machine, and a port that this user may listen on."],
  port_in_use: [500, "Choose another port, or stop what listens there."],
  shutting_down: [503, "The router is closing; send the request elsewhere."],
} as const satisfies Record<string, readonly [status: number, help: string]>;

export type ErrorCode = keyof typeof errorCodes;

export interface ErrorInfo {
  /** Machine-readable particulars: which field, index or id. */
  details?: Record<string, unknown>;
  /** Path of the offending field, as `a.b[0]`. */
  path?: string;
  line?: number;
  column?: number;
  retryAfterMs?: number;
  cause?: unknown;
}

/** The one error class of the project: a stable `code`, an HTTP `status`, and how to mend it. */
export class WarmrouteError extends Error {
  override readonly name = "WarmrouteError";
  readonly code: ErrorCode;
  readonly status: number;
  readonly help: string;
  readonly details: Record<string, unknown>;
  readonly path?: string;
  readonly line?: number;
  readonly column?: number;
  readonly retryAfterMs?: number;

  constructor(code: ErrorCode, message: string, info: ErrorInfo = {}) {
    super(message, info.cause === undefined ? undefined : { cause: info.cause });
    this.code = code;
    this.status = errorCodes[code][0];
    this.help = errorCodes[code][1];
    this.details = info.details ?? {};
    if (info.path !== undefined) this.path = info.path;
    if (info.line !== undefined) this.line = info.line;
    if (info.column !== undefined) this.column = info.column;
    if (info.retryAfterMs !== undefined) this.retryAfterMs = info.retryAfterMs;
  }
}
