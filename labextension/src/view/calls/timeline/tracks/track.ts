/** The calls of one thread that do not overlap, with sums and searches. */

import { lowerBound } from '../../../data/search-sorted.js';
import { Crossings } from './crossings.js';

const FIRST_CAPACITY = 64;
const BLOCK = 512; // calls whose shortest and longest are kept

/** Calls of one thread at one depth of nesting, in the order in which they started. */
export class Track {
  length = 0;
  failures = 0;
  readonly crossings = new Crossings(this);
  reach = -Infinity; // when the last of its calls ended
  private rows = new Uint32Array(FIRST_CAPACITY);
  private starts = new Float64Array(FIRST_CAPACITY);
  private busy = new Float64Array(FIRST_CAPACITY + 1); // before each call: sums of durations
  private failing = new Uint32Array(FIRST_CAPACITY);
  private readonly least: number[] = []; // duration of each whole block; found when needed
  private readonly most: number[] = [];
  private readonly wrong: number[] = []; // places, few

  constructor(readonly thread: number, readonly depth: number) {}

  row(place: number): number {
    return this.rows[place]!;
  }

  start(place: number): number {
    return this.starts[place]!;
  }

  end(place: number): number {
    return this.starts[place]! + this.busy[place + 1]! - this.busy[place]!;
  }

  /** The place of a row; null: it is in another track. */
  placeOf(row: number): number | null {
    const place = lowerBound(this.rows, row, 0, this.length);
    return place < this.length && this.rows[place] === row ? place : null;
  }

  /** The total duration of the calls from `place` to before `next`. */
  busyBetween(place: number, next: number): number {
    return this.busy[next]! - this.busy[place]!;
  }

  /** The shortest and the longest duration of the calls from `place` to before `next`. */
  extremes(place: number, next: number, duration: (row: number) => number): [number, number] {
    this.findBlocks(Math.floor(next / BLOCK), duration);
    let [least, most] = [Infinity, 0];
    for (let at = place; at < next; ) {
      const block = at / BLOCK;
      const whole = at % BLOCK === 0 && at + BLOCK <= next;
      least = Math.min(least, whole ? this.least[block]! : duration(this.rows[at]!));
      most = Math.max(most, whole ? this.most[block]! : duration(this.rows[at]!));
      at += whole ? BLOCK : 1;
    }
    return [least, most];
  }

  /** Finds the shortest and the longest call of each block before the one numbered `last`. */
  private findBlocks(last: number, duration: (row: number) => number): void {
    for (let block = this.least.length; block < last; block++) {
      let [least, most] = [Infinity, 0];
      for (let at = block * BLOCK; at < (block + 1) * BLOCK; at++) {
        const ns = duration(this.rows[at]!);
        least = Math.min(least, ns);
        most = Math.max(most, ns);
      }
      this.least.push(least);
      this.most.push(most);
    }
  }

  /** The place of the n-th call that failed. */
  failure(n: number): number {
    return this.failing[n]!;
  }

  /** The places of the calls from `place` to before `next` that returned NaN or infinity. */
  notFinite(place: number, next: number): readonly number[] {
    const first = lowerBound(this.wrong, place, 0, this.wrong.length);
    return this.wrong.slice(first, lowerBound(this.wrong, next, first, this.wrong.length));
  }

  add(row: number, start: number, duration: number, failed: boolean, notFinite = false): void {
    const place = this.length;
    if (place === this.rows.length) {
      this.reserve(2 * place);
    }
    this.rows[place] = row;
    // The searches need sorted starts, even if the recording is out of order.
    const ordered = place ? Math.max(start, this.starts[place - 1]!) : start;
    this.starts[place] = ordered;
    this.reach = ordered + duration;
    this.busy[place + 1] = this.busy[place]! + duration;
    this.length = place + 1;
    if (failed) {
      this.fail(place);
    }
    if (notFinite) {
      this.wrong.push(place);
    }
  }

  /** Reserves memory for a number of calls. */
  reserve(capacity: number): void {
    if (capacity > this.rows.length) {
      const { rows, starts, busy } = this;
      (this.rows = new Uint32Array(capacity)).set(rows);
      (this.starts = new Float64Array(capacity)).set(starts);
      (this.busy = new Float64Array(capacity + 1)).set(busy);
    }
  }

  /** The first place, from `low` on, whose call starts at `ns` or later. */
  firstFrom(ns: number, low = 0): number {
    let step = 1;
    let high = low;
    while (high < this.length && this.starts[high]! < ns) {
      low = high + 1;
      high += step;
      step *= 2;
    }
    return lowerBound(this.starts, ns, low, Math.min(high, this.length));
  }

  /** The first place whose call has not ended at `ns`. */
  firstOpen(ns: number): number {
    const place = this.firstFrom(ns);
    return place > 0 && this.end(place - 1) > ns ? place - 1 : place;
  }

  /** The first of the failures whose call is at `place` or later. */
  failureFrom(place: number): number {
    return lowerBound(this.failing, place, 0, this.failures);
  }

  private fail(place: number): void {
    const { failing } = this;
    if (this.failures === failing.length) {
      (this.failing = new Uint32Array(2 * failing.length)).set(failing);
    }
    this.failing[this.failures++] = place;
  }
}
