/** A whole number with its thousands apart. */
export const grouped = (value: number): string => Math.round(value).toLocaleString("en-US");

/** "1 block", "2,048 blocks": a number and what it counts. */
export const counted = (n: number, what: string): string => `${grouped(n)} ${what}${n === 1 ? "" : "s"}`;
