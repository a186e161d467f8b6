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
  const rows = <usize>paddedRows();
  const mask = maskColumn();
  memory.copy(out, gates, rows << 3);
  for (let row: usize = 0; row < rows; row++) {
    if (load<u8>(mask + row)) store<f64>(out + (row << 3), Infinity);
  }
  return out;
}
