/** The rows that the table shows, and their order. */

import type { Store } from '../../data/store.js';
import type { Column } from './columns.js';
import { sorted } from './sort.js';

const FIRST_CAPACITY = 1024;

export class Order {
  column: Column | null = null; // null: in recorded order
  descending = false;
  private rows = new Uint32Array(FIRST_CAPACITY);
  private shown = 0;
  private seen = 0;

  constructor(private readonly store: Store) {
    this.rebuild();
  }

  get length(): number {
    return this.shown;
  }

  row(place: number): number {
    return this.rows[place]!;
  }

  /** The position of a row; -1: it does not pass the filter. */
  place(row: number): number {
    return this.rows[row] === row && row < this.shown
      ? row
      : this.rows.subarray(0, this.shown).indexOf(row);
  }

  /** Adds the rows that arrived since the last time. */
  grow(): void {
    if (this.column) {
      this.rebuild();
    } else {
      this.take();
    }
  }

  /** Handles a change of the filter, the labels or the sort order. */
  rebuild(): void {
    this.shown = 0;
    this.seen = 0;
    this.take();
    if (this.column) {
      this.rows = sorted(this.rows.subarray(0, this.shown), this.column.key(), this.descending);
    }
  }

  private take(): void {
    const { store } = this;
    if (store.calls.length > this.rows.length) {
      const wider = new Uint32Array(Math.max(store.calls.length, 2 * this.rows.length));
      wider.set(this.rows);
      this.rows = wider;
    }
    for (; this.seen < store.calls.length; this.seen++) {
      if (store.shows(this.seen)) {
        this.rows[this.shown++] = this.seen;
      }
    }
  }
}
