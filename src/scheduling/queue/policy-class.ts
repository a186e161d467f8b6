// Which class of its profile a request queues in (spec: plugins.md §2.4).
import type { KvRouterConfig } from "../../core/config.js";
import type { PolicyClass, PolicyProfile, PolicyProfiles } from "../../plugins/policy/contract.js";

/** The profile of a model that the policy file gives none: one class for everything, as the configuration says. */
export function syntheticProfile(config: Pick<KvRouterConfig, "routerQueuePolicy" | "routerQueueThreshold">) {
  const { routerQueuePolicy, routerQueueThreshold } = config;
  return {
    defaultPolicyFamily: "default",
    uncachedIslBuckets: [{ minTokens: 0, bucket: "all" }],
    policyClasses: [
      {
        name: "default",
        policyFamily: "default",
        cacheBucket: "all",
        queuePolicy: routerQueuePolicy,
        quantum: 1,
        ...(routerQueueThreshold !== undefined && { prefillBusyThresholdFrac: routerQueueThreshold }),
      },
    ],
  } satisfies PolicyProfile;
}

/** A model's own profile, else the root one, else the synthetic one; nothing is inherited between them. */
export function profileOf(profiles: PolicyProfiles | undefined, model: string, config: KvRouterConfig): PolicyProfile {
  return profiles?.models.get(model) ?? profiles?.profile ?? syntheticProfile(config);
}

/** Whether requests of a class ever queue: without a threshold they do not. */
export const mayQueue = ({ prefillBusyThreshold, prefillBusyThresholdFrac }: PolicyClass): boolean =>
  prefillBusyThreshold !== undefined || prefillBusyThresholdFrac !== undefined;

/** The classes of one profile, by the names that requests may use: explicit classes and families. */
export class PolicyClasses {
  readonly #explicit = new Map<string, PolicyClass>();
  /** The classes of each family, in the order of the buckets. */
  readonly #families = new Map<string, PolicyClass[]>();
  readonly #minTokens: readonly number[];
  readonly #default: readonly PolicyClass[];

  constructor(profile: PolicyProfile) {
    const buckets = profile.uncachedIslBuckets;
    this.#minTokens = buckets.map(({ minTokens }) => minTokens);
    for (const policyClass of profile.policyClasses) {
      const { name, policyFamily, cacheBucket } = policyClass;
      if (policyFamily === undefined) {
        this.#explicit.set(name, policyClass);
        continue;
      }
      const family = this.#families.get(policyFamily) ?? [];
      family[buckets.findIndex(({ bucket }) => bucket === cacheBucket)] = policyClass;
      this.#families.set(policyFamily, family);
    }
    this.#default = this.#families.get(profile.defaultPolicyFamily)!;
  }

  /** Whether the uncached tokens of a request make a difference. */
  get usesBuckets(): boolean {
    return this.#minTokens.length > 1;
  }

  /** What a request may name. */
  get names(): string[] {
    return [...this.#explicit.keys(), ...this.#families.keys()];
  }

  /** Whether a request may use the name. A class of a family goes by its family's name only. */
  has(name: string): boolean {
    return this.#explicit.has(name) || this.#families.has(name);
  }

  /**
   * The strict reading, for a name that a classifier gave: an explicit class, or the class of a family for
   * this many uncached prompt tokens; undefined when there is no such name.
   */
  named(name: string, uncachedTokens: number): PolicyClass | undefined {
    return this.#explicit.get(name) ?? this.#families.get(name)?.[this.#bucket(uncachedTokens)];
  }

  /** The lenient reading, for a name that a client gave: one that is unknown (see `has`) or absent means the default. */
  forClient(name: string | undefined, uncachedTokens: number): PolicyClass {
    const named = name === undefined ? undefined : this.named(name, uncachedTokens);
    return named ?? this.#default[this.#bucket(uncachedTokens)]!;
  }

  /** The last bucket that starts at or below this many tokens. */
  #bucket(uncachedTokens: number): number {
    let bucket = this.#minTokens.length - 1;
    while (bucket > 0 && this.#minTokens[bucket]! > uncachedTokens) bucket--;
    return bucket;
  }
}
