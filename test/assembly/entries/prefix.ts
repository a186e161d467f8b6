export { arenaBudget, arenaInit, arenaInUse, arenaReserve, take } from "../../../assembly/memory/arena";
export { extentsInit, extentWords } from "../../../assembly/memory/extents";
export { chainStep } from "../../../assembly/hash/chain";
export { indexCheck } from "../../../assembly/prefix/check";
export * from "../../../assembly/prefix/index";
export * from "../../../assembly/snapshot/index-part";
