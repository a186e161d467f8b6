export { columnAddress, rankAdd, rankFlags, ranksInit, rowOf } from "../../../assembly/load/ranks";
export { arenaInit, take } from "../../../assembly/memory/arena";
export { explainRow, scoreRow, scoreRows } from "../../../assembly/select/cost";
export { exp, taintMultiplier, tanh } from "../../../assembly/select/exp";
export * from "../../../assembly/select/pick";
export * from "../../../assembly/select/random";
export { scoreTwoTier } from "../../../assembly/select/two-tier";
