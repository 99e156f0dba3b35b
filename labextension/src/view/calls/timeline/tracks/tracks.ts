/** Groups calls by thread and depth into tracks, in which calls never overlap. */

import { THREADS } from '../../../data/columns.js';
import { lowerBound } from '../../../data/search-sorted.js';
import type { Store } from '../../../data/store.js';

const DEEPEST = 5;
const FIRST_CAPACITY = 64;
const AT_ONCE = 200_000; // calls that are processed in one frame
const BLOCK = 512; // calls whose shortest and longest are kept

/** Calls of one thread at one depth of nesting, in the order in which they started. */
export class Track {
  length = 0;
  failures = 0;
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

  has(row: number): boolean {
    const place = lowerBound(this.rows, row, 0, this.length);
    return place < this.length && this.rows[place] === row;
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

/** The tracks of a store, which grow with it. */
export class Tracks {
  start = 0; // of the first call; negative if a running cell sent it after a later one
  end = 0; // of the call that ends last
  failures = 0;
  private seen = 0;
  private readonly byThread = new Map<number, Track[]>();
  private order: number[] = [];

  constructor(private readonly store: Store) {}

  /** The threads that have calls. */
  get threads(): readonly number[] {
    return this.order;
  }

  /** By depth; inner calls come later. */
  of(thread: number): readonly Track[] {
    return this.byThread.get(thread) ?? [];
  }

  /** Adds calls that arrived since the last time; false: more calls are left. */
  grow(): boolean {
    const { calls } = this.store;
    this.reserve();
    const last = Math.min(calls.length, this.seen + AT_ONCE);
    for (; this.seen < last; this.seen++) {
      const row = this.seen;
      const start = calls.start(row);
      const duration = calls.duration(row);
      const failed = calls.error(row) !== 0;
      const wrong = this.store.labels.notFinite.has(row);
      trackAt(this.byThread.get(calls.thread(row))!, start).add(row, start, duration, failed, wrong);
      this.start = Math.min(this.start, start);
      this.end = Math.max(this.end, start + duration);
      this.failures += failed ? 1 : 0;
    }
    return last === calls.length;
  }

  /** Reserves memory, so that adding many calls at once does not copy repeatedly. */
  private reserve(): void {
    const { calls } = this.store;
    const counts = new Uint32Array(THREADS);
    for (let row = this.seen; row < calls.length; row++) {
      counts[calls.thread(row)]!++;
    }
    counts.forEach((count, thread) => {
      if (count > 0 && !this.byThread.has(thread)) {
        const outer = new Track(thread, 0);
        outer.reserve(count);
        this.byThread.set(thread, [outer]);
      }
    });
    this.order = [...this.byThread.keys()].sort((a, b) => a - b);
  }
}

/** The outermost of a thread's tracks that is free at `start`. */
function trackAt(tracks: Track[], start: number): Track {
  for (const track of tracks) {
    if (track.reach <= start) {
      return track;
    }
  }
  if (tracks.length < DEEPEST) {
    tracks.push(new Track(tracks[0]!.thread, tracks.length));
  }
  return tracks[tracks.length - 1]!;
}

/** The tracks, reduced to the calls that pass the store's filter. */
export class LitTracks {
  private found: ReadonlyMap<Track, Track> | null = null; // null: to be found again

  constructor(private readonly store: Store, private readonly tracks: Tracks) {}

  /** The filter or the calls changed. */
  forget(): void {
    this.found = null;
  }

  /** The filtered tracks of all threads. */
  get all(): readonly Track[] {
    return this.tracks.threads.flatMap(thread => this.of(thread));
  }

  /** The shortest and the longest of the calls that run in a range of time; null: there are none. */
  extremes(from: number, to: number): readonly [number, number] | null {
    const duration = (row: number): number => this.store.calls.duration(row);
    const each = this.all.map(track =>
      track.extremes(track.firstOpen(from), track.firstFrom(to), duration)
    );
    const least = each.reduce((found, [one]) => Math.min(found, one), Infinity);
    return least < Infinity ? [least, Math.max(...each.map(([, one]) => one))] : null;
  }

  /** The filtered tracks of a thread; unchanged without a filter. */
  of(thread: number): readonly Track[] {
    const tracks = this.tracks.of(thread);
    if (this.store.showsAll()) {
      return tracks;
    }
    this.found ??= this.find();
    const { found } = this;
    return tracks.map(track => found.get(track)!);
  }

  private find(): ReadonlyMap<Track, Track> {
    const all = this.tracks.threads.flatMap(thread => this.tracks.of(thread));
    return new Map(all.map(track => [track, narrowed(track, this.store)]));
  }
}

/** The calls of a track that pass the store's filter. */
function narrowed(track: Track, store: Store): Track {
  const lit = new Track(track.thread, track.depth);
  const { calls } = store;
  for (let place = 0; place < track.length; place++) {
    const row = track.row(place);
    if (store.shows(row)) {
      const wrong = store.labels.notFinite.has(row);
      lit.add(row, track.start(place), calls.duration(row), calls.error(row) !== 0, wrong);
    }
  }
  return lit;
}
