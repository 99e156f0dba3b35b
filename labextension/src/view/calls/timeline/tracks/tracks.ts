/** Groups calls by thread and depth into tracks, in which calls never overlap. */

import { hasFailed } from '../../../data/labels.js';
import { THREADS } from '../../../data/columns.js';
import type { Store } from '../../../data/store.js';
import { Track } from './track.js';

const DEEPEST = 5;
const AT_ONCE = 200_000; // calls that are processed in one frame

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

  /** Whether a crossing made several calls. */
  get haveCrossings(): boolean {
    return this.order.some(thread => this.of(thread).some(track => track.crossings.length > 0));
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
      const failed = hasFailed(this.store, row);
      const wrong = this.store.labels.notFinite.has(row);
      const track = trackAt(this.byThread.get(calls.thread(row))!, start);
      track.add(row, start, duration, failed, wrong);
      track.crossings.add(track.length - 1, calls.crossing(row));
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
      lit.add(row, track.start(place), calls.duration(row), hasFailed(store, row), wrong);
    }
  }
  return lit;
}
