// Status codes of the kernel's verbs. The host turns each into a typed error
// (src/kernel/status.ts); zero and positive values are results.

/** The verb did what it was asked. */
export const OK: i32 = 0;
/** The memory budget of the pool does not allow it; nothing was changed. */
export const MEMORY_BUDGET: i32 = -1;
/** The parent name of a store is unknown to that rank in every tier. */
export const ORPHAN: i32 = -2;
/** A block is named like its parent, or twice in one store. */
export const INVALID_SEQUENCE: i32 = -3;
/** In a pool of own names, a block's name is not its sequence hash. */
export const FOREIGN_NAME: i32 = -4;
/** The slot holds no rank. */
export const UNKNOWN_RANK: i32 = -5;
/** The booking has ended, or its handle was never given out. */
export const UNKNOWN_BOOKING: i32 = -6;
/** No slot or row is left. */
export const TOO_MANY_RANKS: i32 = -7;
/** A snapshot record is not what its kind requires. */
export const BAD_RECORD: i32 = -8;
