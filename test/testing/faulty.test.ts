// Suites that cannot fail prove nothing: each fault of the plugins in faulty/ must be found by the test that is for it,
// with words that say what to mend.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

const order = "looks at values, not at the order of rows, ids or slots";
const eligible = "chooses an eligible candidate, and leaves a finite cost for each";
const views = "keeps no view beyond the call that lent it";
const slots = "treats a new rank in a used slot as a new rank";
const makes = "makes a policy that a router takes, and another one each time";
const closes = "closes once, soon and quietly, also with requests in flight";

const policies: [fault: string, found: string, words: RegExp][] = [
  ["takes the first row", order, /rows come in any order/],
  ["takes the second row when there is one", order, /rows come in any order/],
  ["draws among the first rows", "draws for workers, not for rows", /must be drawn as often as before/],
  ["prefers high ids", order, /the same workers under other ids/],
  ["prefers low slots", order, /the same workers under other ids/],
  [
    "forgets the last row",
    eligible,
    /scorer 0 of the policy .* left row \d+ without a finite cost. Write a finite cost/,
  ],
  ["divides by what may be zero", eligible, /scorer 0 of the policy .* left row \d+ without a finite cost/],
  ["picks one beyond the end", eligible, /the picker of the policy .* must return a row from 0 to (\d+)/],
  ["reads what it did not declare", eligible, /the scorer 0 .* failed. It threw TypeError: .*'deviceOverlapBlocks'/],
  ["needs two candidates", "works with 1 candidates", /It threw RangeError: randomBelow\(\) needs/],
  ["keeps a view", views, /used a view after the call that it was lent for/],
  ["keeps a column", views, /used a view after the call.*read them anew in each call/],
  ["keeps a column in which it finds its row", views, /used a view after the call.*read them anew in each call/],
  ["draws from elsewhere", "decides alike from the same seed", /draw from ctx\.random\(\)/],
  ["counts for all pools together", "shares nothing with the policies of other pools", /not in the module/],
  ["asks for more later", "asks for the same inputs whenever it is asked", /requiredInputs is read once/],
  ["keeps what it knew of a released slot", slots, /drop what you keep for a slot in onSlotReleased/],
  ["throws as a slot is released", slots, /onSlotReleased\(\) must not throw.*/],
  ["throws as it closes", closes, /neither it nor onSlotReleased\(\) may throw/],
  ["never closes", closes, /close\(\) must end soon/],
  ["is one for all pools", makes, /make\(\) must return a new policy each time/],
  [
    "filters all",
    "selects a worker for some request",
    /labels zone \(zone-0, zone-1\).*taints gpu-a, gpu-b, spot. Name/,
  ],
  ["clears a column", eligible, /the scorer 1 .* it changed rows\.load\.activeRequests, row \d+, from \d+ to 0/],
  ["filters with a column that it changes", eligible, /the filter 0 .* it changed rows\.load\.activePrefillTokens/],
  ["sorts slots to pick", eligible, /the picker .* it changed rows\.slot.*change a copy \(slice\(\)\)/],
  ["is no policy", makes, /a worker-selection factory must return a policy, not an object/],
];

const plain = "answers a request without a session with the same request";
const gaveUp = "lets a request go whose caller gives up while it waits";
const ended = "holds nothing of requests that have ended, in whatever way and order";
const events = "takes events that it does not know, and in any order";
const own = "makes a classifier of its own for each router";
const closesWaiting = "closes soon and quietly, also with requests that run and wait";

const classifiers: [fault: string, found: string, words: RegExp][] = [
  ["answers nothing", plain, /classify\(\) must answer with the request that it was given/],
  ["answers a copy", plain, /classify\(\) must answer with the request that it was given/],
  ["answers another request", plain, /the answer is not the request that was asked about/],
  ["needs a session", plain, /request_classifier_failed: .*TypeError: .*'sessionId'/],
  ["sets a cost of nothing", plain, /the scheduling cost is not a whole number of at least 1/],
  ["never answers", plain, /still waits after 2000 ms, though none runs/],
  ["leaks a waiter", gaveUp, /take the request off your list and settle its promise/],
  ["lets those in that gave up", gaveUp, /after others like it were given up, still waits/],
  ["forgets requests that fail", ended, /let the next one go on `completed` and on `aborted`/],
  ["leaks waiters of tenants", gaveUp, /take the request off your list and settle its promise/],
  [
    "lets those of tenants in that gave up",
    gaveUp,
    /with the tenant .*, after others like it were given up, still waits/,
  ],
  ["forgets requests of tenants that fail", ended, /the tenant "\w+".* still waits after 2000 ms, though none runs/],
  [
    "forgets requests of one tenant that fail",
    ended,
    /the tenant "acme".* still waits after 2000 ms, though none runs/,
  ],
  ["forgets requests of one user that find no worker", ended, /the user "cy".* still waits/],
  [
    "forgets requests of a user of a tenant in a session that fail",
    ended,
    /the session \w, the tenant "\w+",.* the user "\w+".* still waits/,
  ],
  ["forgets requests of one pinned worker that fail", ended, /with .*pin still waits/],
  ["forgets requests of one project that fail", ended, /the project "moon".* still waits/],
  ["lets those in that gave up while it thought", ended, /still waits after 2000 ms, though none runs/],
  [
    "holds up one tier for ever",
    "answers a request with the attribute tier with the same request",
    /the tier "silver" still/,
  ],
  ["answers, hears and closes never", plain, /settle the promise of classify\(\) for every request/],
  ["throws on an unknown event", events, /the type paused-by-a-later-version: have a default branch/],
  ["expects events in order", events, /the type responding: .* expect events in any order/],
  ["never ends with an event", events, /'never ended'/],
  ["needs a worker", "works without workers, and as they come and go", /context\.workers\(\) may be empty/],
  [
    "gates all routers together",
    "shares nothing with the classifiers of other routers",
    /like which many run in another router, still waits/,
  ],
  ["is one for all routers", own, /make\(\) must return a new classifier each time/],
  ["never closes", closesWaiting, /close\(\) must end soon/],
  ["throws as it closes", closesWaiting, /neither it nor onEvent\(\) may throw/],
  ["leaves a rejection to nobody", plain, /a promise of the classifier was rejected, and nobody was told/],
  ["is no classifier", own, /answered a string, not a classifier|answered "gate", not a classifier/],
];

interface Outcome {
  fullName: string;
  status: "passed" | "failed" | "skipped" | "pending";
  failureMessages: string[];
}

const quoted = (text: string) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
const outcomes = new Map<string, Outcome>();
const folder = mkdtempSync(join(tmpdir(), "warmroute-faulty-"));

beforeAll(() => {
  const names = [
    ...policies.map(([fault, found]) => `worker-selection policy ${fault} ${found}`),
    ...classifiers.map(([fault, found]) => `request classifier ${fault} ${found}`),
  ];
  const only = `^(${names.map(quoted).join("|")}|(worker-selection policy|request classifier) none .*)$`;
  const report = join(folder, "report.json");
  const options = ["--config", "test/testing/faulty/vitest.config.ts", "--reporter=json", `--outputFile=${report}`];
  const { status, stderr } = spawnSync(
    process.execPath,
    ["node_modules/vitest/vitest.mjs", "run", ...options, "-t", only],
    { cwd: root, encoding: "utf8" },
  );
  expect(status, stderr).toBe(1);
  const { testResults } = JSON.parse(readFileSync(report, "utf8")) as {
    testResults: { assertionResults: Outcome[] }[];
  };
  for (const outcome of testResults.flatMap((file) => file.assertionResults)) outcomes.set(outcome.fullName, outcome);
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each([
  ["worker-selection policy", policies],
  ["request classifier", classifiers],
])("a %s", (kind, faults) => {
  test.each(faults)("that %s", (fault, found, words) => {
    const { status, failureMessages } = outcomes.get(`${kind} ${fault} ${found}`)!;
    expect(status).toBe("failed");
    expect(failureMessages[0]).toMatch(words);
  });

  test("without a fault passes every test", () => {
    const own = [...outcomes.values()].filter(({ fullName }) => fullName.startsWith(`${kind} none `));
    expect(own.length).toBeGreaterThan(10);
    expect(own.filter(({ status }) => status !== "passed")).toEqual([]);
  });
});
