export * from "../../../assembly/hash/blocks";
export { xxh3_64 } from "../../../assembly/hash/xxh3";
