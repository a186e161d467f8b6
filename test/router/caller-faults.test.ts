// A classifier that reads what a request costs meets what is wrong with the request first: the caller's fault stays so.
import { expect, test } from "vitest";
import "../../src/kernel/inlined.js";
import type { SelectRequest } from "../../src/router/contract.js";
import { createRouter } from "../../src/router/create-router.js";
import { classifies, Diary } from "./plugin-bundle.js";

const tokens = [1, 2, 3];
const rows: [name: string, request: SelectRequest, code: string, path: string][] = [
  ["a token that is none", { tokens: [1, -2, 3] }, "invalid_tokens", "tokens[1]"],
  ["an allow-list of no ids", { tokens, allowedWorkerIds: ["x"] }, "invalid_request", "allowedWorkerIds[0]"],
  [
    "taints that are no list",
    { tokens, routingConstraints: { requiredTaints: "a" as never } },
    "invalid_request",
    "routingConstraints.requiredTaints",
  ],
  [
    "an override out of range",
    { tokens, configOverride: { routerTemperature: -1 } },
    "invalid_config",
    "configOverride.routerTemperature",
  ],
];

test.each(rows)("%s", async (_, request, code, path) => {
  const diary = new Diary();
  const logged: unknown[] = [];
  const log = (...line: unknown[]) => void logged.push(line);
  diary.classify = (request) => request.setSchedulingCostTokens(request.schedulingCostTokens);
  const plugins = await diary.bundle(classifies);
  const router = await createRouter({
    ...{ plugins, workers: [{ workerId: "1" }], log: { debug: log, info: log, warn: log, error: log } },
  });
  await expect(router.select({ requestId: "r", ...request })).rejects.toMatchObject({ code, status: 400, path });
  expect(logged).toEqual([]);
  expect(router.stats().classifier).toMatchObject({ live: 0, failed: 0 });
  expect((await router.select({ requestId: "r", tokens })).worker.workerId).toBe("1");
  await router.close();
});
