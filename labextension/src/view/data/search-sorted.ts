/** Searches a sorted array. */

/** The first place from `low` to before `high` whose value is not less; `high`: none. */
export function lowerBound(
  sorted: Float64Array | Uint32Array | readonly number[],
  value: number,
  low: number,
  high: number
): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
