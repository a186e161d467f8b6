// Which rows a request may take: the gates of ranks and the request's own mask, as one column.
import { costColumn, gateColumn, maskColumn, paddedRows } from "../load/columns";

/**
 * Address of a column with 0 for each row that this request may take and +Infinity for others:
 * the gates themselves, or with `masked` the cost column, filled with gates and mask.
 */
export function eligibleColumn(masked: bool): usize {
  const gates = gateColumn();
  if (!masked) return gates;
  const out = costColumn();
  const end = <usize>paddedRows() << 3;
  let mask = maskColumn();
  const never = f64x2.splat(Infinity);
  for (let i: usize = 0; i < end; i += 32, mask += 4) {
    const wide = i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load_zero<u32>(mask)));
    const zero = i64x2.splat(0);
    const first = i64x2.ne(i64x2.extend_low_i32x4_u(wide), zero);
    const second = i64x2.ne(i64x2.extend_high_i32x4_u(wide), zero);
    v128.store(out + i, v128.bitselect(never, v128.load(gates + i), first));
    v128.store(out + i, v128.bitselect(never, v128.load(gates + i, 16), second), 16);
  }
  return out;
}
