// The requests of the classifiers' suite: everything that a classifier can tell them apart by.
import { Random } from "../core/random.js";
import type { SelectRequest } from "../router/contract.js";
import { someOf, type Values } from "./values.js";

export const workerOf = (i: number) => ({ workerId: 2n ** 64n - 1n - BigInt(i), totalKvBlocks: 16384 });

export interface RequestShape {
  /** Completes "a request …". */
  readonly what: string;
  readonly parts?: Partial<SelectRequest>;
  readonly attributes?: Readonly<Record<string, string>>;
}

export const ofSession: RequestShape = { what: "of a session", parts: { sessionId: "s" } };

/** One request of each kind, attributes apart. */
export const kindsOfRequest: readonly RequestShape[] = [
  { what: "without a session" },
  ofSession,
  {
    what: "of a session's last turn",
    parts: {
      sessionContext: { sessionId: "s", parentSessionId: "p", sessionFinal: true, inputTrigger: "tool_result" },
    },
  },
  { what: "with a pin", parts: { sessionId: "s", pinnedWorker: { workerId: workerOf(0).workerId, dpRank: 0 } } },
  {
    what: "with an affinity target",
    parts: { sessionId: "s", affinityTarget: { workerId: workerOf(1).workerId } },
  },
  { what: "of a class that nobody knows", parts: { policyClass: "no such class" } },
  { what: "with priorities", parts: { priorityJump: -2.5, strictPriority: 3 } },
  { what: "with a long prompt", parts: { tokens: new Uint32Array(100_000), expectedOutputTokens: 5000 } },
];

/** A request that is classified, and then finds no worker. */
export const withoutWorker = ({ what, parts, attributes }: RequestShape): RequestShape => ({
  what: `${what} that no worker may take`,
  parts: { ...parts, routingConstraints: { requiredTaints: ["a taint that no worker has"] } },
  ...(attributes && { attributes }),
});

/** One request for each value of an attribute. */
export const withEach = (name: string, values: readonly string[]): RequestShape[] =>
  values.map((value) => ({ what: `with the ${name} ${JSON.stringify(value)}`, attributes: { [name]: value } }));

const MIXED = 40;

/** Every kind, every value of every attribute alone, and mixtures; the same in every run. */
export function shapesOf(attributes: Values): RequestShape[] {
  const random = new Random(11n);
  const alone = Object.entries(attributes).flatMap(([name, values]) => withEach(name, values));
  return [...kindsOfRequest, ...alone, ...Array.from({ length: MIXED }, () => mixture(random, attributes))];
}

function mixture(random: Random, values: Values): RequestShape {
  const sessionId = ["s", "a", "b", "c"][random.below(5)];
  const attributes = someOf(random, values);
  const pinned = random.below(6) === 0;
  const isFinal = sessionId !== undefined && random.below(6) === 0;
  const named = Object.entries(attributes).map(([name, value]) => `, the ${name} ${JSON.stringify(value)}`);
  return {
    what: `with the session ${sessionId ?? "(none)"}${named.join("")}${pinned ? " and a pin" : ""}`,
    parts: {
      tokens: new Uint32Array(1 + random.below(500)),
      ...(isFinal && { sessionContext: { sessionId, sessionFinal: true } }),
      ...(sessionId !== undefined && !isFinal && { sessionId }),
      ...(pinned && { pinnedWorker: { workerId: workerOf(random.below(2)).workerId, dpRank: 0 } }),
      ...(random.below(6) === 0 && { strictPriority: 1 + random.below(3) }),
    },
    attributes,
  };
}
