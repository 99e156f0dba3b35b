/** The calls by thread and depth of nesting: in tracks, in which calls never overlap. */

import { hasFailed } from '../../data/labels.js';
import { lowerBound } from '../../data/search-sorted.js';
import type { Store } from '../../data/store.js';
import { quantile } from '../distribution/figures.js';

const FIRST_CAPACITY = 16;
const BLOCK = 512; // calls whose shortest and longest are kept
const DEEPEST = 5;
const AT_ONCE = 200_000; // calls that are added in one frame
const MOST_LIVE = 50_000; // calls whose median is computed while the user drags

/** Calls or other spans of time, in the order in which they start; they do not overlap. */
export interface Sequence {
  readonly length: number;
  start(place: number): number;
  end(place: number): number;
  /** The first place, from `low` on, that starts at `ns` or later. */
  firstFrom(ns: number, low?: number): number;
  /** The first place that has not ended at `ns`. */
  firstOpen(ns: number): number;
}

/** Maps time to a width in pixels. */
export interface Scale {
  readonly from: number;
  readonly to: number;
  readonly width: number;
}

export interface Spans {
  /** One call, from pixel `left` to `right`. */
  bar(place: number, left: number, right: number): void;
  /** The calls from `place` to before `next` share the pixel at `x`. */
  shade(place: number, next: number, x: number): void;
}

/** Visits what is visible, in a few searches per pixel, independent of the number of calls. */
export function walk(track: Sequence, { from, to, width }: Scale, spans: Spans): void {
  const pixel = (to - from) / width;
  let place = track.firstOpen(from);
  while (place < track.length && track.start(place) < to) {
    const left = (track.start(place) - from) / pixel;
    const right = (track.end(place) - from) / pixel;
    if (right - left >= 1) {
      spans.bar(place, left, right);
      place++;
      continue;
    }
    const x = Math.floor(left);
    let next = Math.max(track.firstFrom(from + (x + 1) * pixel, place), place + 1);
    const last = next - 1;
    if (last > place && track.end(last) - track.start(last) >= pixel) {
      next = last;
    }
    spans.shade(place, next, x);
    place = next;
  }
}

/** Calls of one thread at one depth of nesting, in the order in which they started. */
export class Track implements Sequence {
  length = 0;
  readonly failed: number[] = []; // places
  readonly notFinite: number[] = [];
  crossings: Track | null = null; // a span for every crossing that made several calls
  private crossing: number | null = null; // of the last call
  private rows = new Uint32Array(FIRST_CAPACITY);
  private starts = new Float64Array(FIRST_CAPACITY);
  private busy = new Float64Array(FIRST_CAPACITY + 1); // before each call: sums of durations
  private readonly least: number[] = []; // duration in each block
  private readonly most: number[] = [];

  constructor(readonly depth: number) {}

  add(row: number, start: number, duration: number): void {
    const place = this.length++;
    if (place === this.rows.length) {
      const { rows, starts, busy } = this;
      (this.rows = new Uint32Array(2 * place)).set(rows);
      (this.starts = new Float64Array(2 * place)).set(starts);
      (this.busy = new Float64Array(2 * place + 1)).set(busy);
    }
    this.rows[place] = row;
    // The searches need sorted starts, even if the recording is out of order.
    this.starts[place] = place ? Math.max(start, this.starts[place - 1]!) : start;
    this.busy[place + 1] = this.busy[place]! + duration;
    const block = Math.floor(place / BLOCK);
    this.least[block] = Math.min(this.least[block] ?? Infinity, duration);
    this.most[block] = Math.max(this.most[block] ?? 0, duration);
  }

  /** Notes which crossing made the last call; null: unknown. */
  cross(crossing: number | null): void {
    const last = this.length - 1;
    if (crossing !== null && crossing === this.crossing) {
      const spans = (this.crossings ??= new Track(this.depth));
      if (!spans.length || spans.row(spans.length - 1) !== last - 1) {
        spans.add(last, this.start(last - 1), 0);
      }
      const nth = spans.length - 1;
      spans.rows[nth] = last;
      spans.busy[nth + 1] = spans.busy[nth]! + this.end(last) - spans.start(nth);
    }
    this.crossing = crossing;
  }

  /** The row of a call; of a crossing: the place of its last call. */
  row(place: number): number {
    return this.rows[place]!;
  }

  start(place: number): number {
    return this.starts[place]!;
  }

  end(place: number): number {
    return this.starts[place]! + this.busy[place + 1]! - this.busy[place]!;
  }

  has(row: number): boolean {
    return this.rows[lowerBound(this.rows, row, 0, this.length - 1)] === row;
  }

  /** The total duration of the calls from `place` to before `next`. */
  busyBetween(place: number, next: number): number {
    return this.busy[next]! - this.busy[place]!;
  }

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

  firstOpen(ns: number): number {
    const place = this.firstFrom(ns);
    return place > 0 && this.end(place - 1) > ns ? place - 1 : place;
  }

  /** The call that is nearest to a time, less than `reach` away; null: none. */
  nearest(ns: number, reach: number): number | null {
    const away = (place: number): number =>
      place < 0 || place >= this.length
        ? Infinity
        : Math.max(this.start(place) - ns, ns - this.end(place), 0);
    const after = this.firstFrom(ns);
    const place = away(after) < away(after - 1) ? after : after - 1;
    return away(place) < reach ? place : null;
  }

  /** The shortest and the longest duration of the calls from `place` to before `next`. */
  extremes(place: number, next: number): [least: number, most: number] {
    let [least, most] = [Infinity, 0];
    while (place < next) {
      const isWhole = place % BLOCK === 0 && place + BLOCK <= next;
      const ns = isWhole ? 0 : this.busyBetween(place, place + 1);
      least = Math.min(least, isWhole ? this.least[place / BLOCK]! : ns);
      most = Math.max(most, isWhole ? this.most[place / BLOCK]! : ns);
      place += isWhole ? BLOCK : 1;
    }
    return [least, most];
  }
}

/** How many of some sorted places are from `place` to before `next`. */
function countIn(places: readonly number[], place: number, next: number): number {
  const { length } = places;
  return lowerBound(places, next, 0, length) - lowerBound(places, place, 0, length);
}

/** From one time to a later one, in nanoseconds since the first call. */
export type Range = readonly [from: number, to: number];

/** The tracks of a store, which grow with it: for each thread one for each depth of nesting. */
export class Tracks {
  start = 0; // of the first call; negative if a running cell sent it after a later one
  end = 0; // of the call that ends last
  threads: number[] = []; // those that have calls
  private seen = 0;
  private readonly byThread: Track[][] = [];
  private narrowed: Track[][] | null = null; // null: to be found again

  constructor(private readonly store: Store) {}

  /** Adds calls that arrived since the last time; false: more calls are left. */
  grow(): boolean {
    const { calls } = this.store;
    const last = Math.min(calls.length, this.seen + AT_ONCE);
    for (; this.seen < last; this.seen++) {
      const row = this.seen;
      const start = calls.start(row);
      const track = this.free(calls.thread(row), start);
      this.add(track, row, start);
      track.cross(calls.crossing(row));
      this.start = Math.min(this.start, start);
      this.end = Math.max(this.end, start + calls.duration(row));
    }
    this.threads = Object.keys(this.byThread).map(Number);
    this.forget();
    return last === calls.length;
  }

  /** The filter or the calls changed. */
  forget(): void {
    this.narrowed = null;
  }

  /** The tracks of each of `threads`; inner calls come later. */
  get all(): Track[][] {
    return this.threads.map(thread => this.byThread[thread]!);
  }

  /** The same, reduced to the calls that pass the filter. */
  get lit(): Track[][] {
    if (this.store.showsAll()) {
      return this.all;
    }
    this.narrowed ??= this.all.map(band => band.map(track => this.narrow(track)));
    return this.narrowed;
  }

  get failures(): number {
    return this.all.flat().reduce((sum, { failed }) => sum + failed.length, 0);
  }

  /** The shortest and the longest of the calls that run in a range; null: there are none. */
  extremes([from, to]: Range): Range | null {
    let [least, most] = [Infinity, 0];
    for (const track of this.lit.flat()) {
      const ends = track.extremes(track.firstOpen(from), track.firstFrom(to));
      [least, most] = [Math.min(least, ends[0]), Math.max(most, ends[1])];
    }
    return least < Infinity ? [least, most] : null;
  }

  /**
   * The number of the calls that run in a range, the sum of their times in it, and the median of
   * their whole durations; null: no calls, or too many while the range is not `isChosen`.
   */
  figures([from, to]: Range, isChosen: boolean) {
    let [calls, failed, sum] = [0, 0, 0];
    const parts: [track: Track, first: number, next: number][] = [];
    for (const track of this.lit.flat()) {
      const [first, next] = [track.firstOpen(from), track.firstFrom(to)];
      if (next > first) {
        parts.push([track, first, next]);
        calls += next - first;
        failed += countIn(track.failed, first, next);
        sum += track.busyBetween(first, next);
        sum -= Math.max(from - track.start(first), 0) + Math.max(track.end(next - 1) - to, 0);
      }
    }
    if (!calls || (!isChosen && calls > MOST_LIVE)) {
      return { calls, failed, sum, median: null };
    }
    const durations = new Float64Array(calls);
    let filled = 0;
    for (const [track, first, next] of parts) {
      for (let place = first; place < next; place++) {
        durations[filled++] = track.busyBetween(place, place + 1);
      }
    }
    return { calls, failed, sum, median: quantile(durations.sort(), 0.5) };
  }

  private narrow(track: Track): Track {
    const lit = new Track(track.depth);
    for (let place = 0; place < track.length; place++) {
      if (this.store.shows(track.row(place))) {
        this.add(lit, track.row(place), track.start(place));
      }
    }
    return lit;
  }

  private add(track: Track, row: number, start: number): void {
    track.add(row, start, this.store.calls.duration(row));
    if (hasFailed(this.store, row)) {
      track.failed.push(track.length - 1);
    }
    if (this.store.labels.notFinite.has(row)) {
      track.notFinite.push(track.length - 1);
    }
  }

  /** The outermost of a thread's tracks that is free at `start`. */
  private free(thread: number, start: number): Track {
    const tracks = (this.byThread[thread] ??= []);
    for (const track of tracks) {
      if (track.end(track.length - 1) <= start) {
        return track;
      }
    }
    if (tracks.length < DEEPEST) {
      tracks.push(new Track(tracks.length));
    }
    return tracks.at(-1)!;
  }
}
