export { arenaInit, arenaInUse } from "../../../assembly/memory/arena";
export {
  EXTENT_MAX,
  extentCapacity,
  extentGive,
  extentShrink,
  extentsInit,
  extentTake,
  extentWords,
} from "../../../assembly/memory/extents";
