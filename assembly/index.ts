// The ABI of the kernel. (Under construction.)
export { arenaInit, take, arenaInUse } from "./memory/arena";
export { slabNew, slabTake, slabGive, slabLive } from "./memory/slab";
