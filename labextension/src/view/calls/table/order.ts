/** The rows that the table shows, and their order: a million of them, in typed arrays. */

import type { Store } from '../../data/store.js';
import type { Column } from './columns.js';

const FIRST_CAPACITY = 1024;
const DIGITS = 4; // of a double, 16 bits each

export class Order {
  length = 0;
  column: Column | null = null; // null: in recorded order
  descending = false;
  private rows = new Uint32Array(FIRST_CAPACITY);
  private seen = 0;

  constructor(private readonly store: Store) {}

  row(place: number): number {
    return this.rows[place]!;
  }

  /** The position of a row; -1: it does not pass the filter. */
  place(row: number): number {
    const isInPlace = this.rows[row] === row && row < this.length;
    return isInPlace ? row : this.rows.subarray(0, this.length).indexOf(row);
  }

  /** Handles a change of the filter, the labels or the sort order. */
  rebuild(): void {
    this.length = this.seen = 0;
    this.grow();
  }

  /** Adds the rows that arrived since the last time. */
  grow(): void {
    const { column, store } = this;
    const { length } = store.calls;
    if (column) {
      this.length = this.seen = 0;
    }
    if (length > this.rows.length) {
      const rows = new Uint32Array(Math.max(length, 2 * this.rows.length));
      rows.set(this.rows);
      this.rows = rows;
    }
    for (; this.seen < length; this.seen++) {
      if (store.shows(this.seen)) {
        this.rows[this.length++] = this.seen;
      }
    }
    if (column) {
      this.rows = sorted(this.rows.subarray(0, this.length), column.key(), this.descending);
    }
  }
}

/**
 * Sorts ascending rows stably by keys that are not negative, with a radix sort: the bits of such
 * numbers have the same order.
 */
export function sorted(
  rows: Uint32Array,
  key: (row: number) => number,
  descending: boolean
): Uint32Array<ArrayBuffer> {
  const keys = new Float64Array((rows.at(-1) ?? -1) + 1);
  rows.forEach(row => (keys[row] = key(row)));
  const digits = new Uint16Array(keys.buffer);
  let [from, to] = [Uint32Array.from(rows), new Uint32Array(rows.length)];
  if (descending) {
    from.reverse(); // and again at the end, for the order of equal rows
  }
  for (let digit = 0; digit < DIGITS; digit++) {
    const places = new Uint32Array(0x10001);
    for (const row of from) {
      places[digits[DIGITS * row + digit]! + 1]!++;
    }
    if (places.includes(from.length, 1)) {
      continue; // all have the same digit
    }
    for (let bucket = 0; bucket < 0x10000; bucket++) {
      places[bucket + 1]! += places[bucket]!;
    }
    for (const row of from) {
      to[places[digits[DIGITS * row + digit]!]!++] = row;
    }
    [from, to] = [to, from];
  }
  return descending ? from.reverse() : from;
}
