import { describe, expect, test } from 'vitest';
import { EVERYTHING } from '../../../../../src/view/data/store.js';
import { LitTracks, Tracks } from '../../../../../src/view/calls/timeline/tracks/tracks.js';
import { columns, storeOf } from '../../stores.js';

describe('Tracks', () => {
  test('put nested calls of one thread at different depths', () => {
    const store = storeOf([
      { start: 0, duration: 100 },
      { start: 10, duration: 20 },
      { start: 15, duration: 5 },
      { start: 40, duration: 20 },
      { start: 100, duration: 5 },
      { start: 101, duration: 50, thread: 1 }
    ]);
    const tracks = new Tracks(store);
    tracks.grow();
    expect(tracks.threads).toEqual([0, 1]);
    expect(rowsOf(tracks, 0)).toEqual([[0, 4], [1, 3], [2]]);
    expect(rowsOf(tracks, 1)).toEqual([[5]]);
    expect(tracks.end).toBe(151);
  });

  test('add calls that arrive later', () => {
    const store = storeOf([{ start: 0 }, { start: 20 }]);
    const tracks = new Tracks(store);
    tracks.grow();
    store.calls.append(columns([{ start: 30, error: 1 }]));
    expect(tracks.grow()).toBe(true);
    expect(rowsOf(tracks, 0)).toEqual([[0, 1, 2]]);
    expect(tracks.failures).toBe(1);
  });

  test('add a large number of calls in several steps', () => {
    const calls = Array.from({ length: 200_001 }, (_, n) => ({ start: 20 * n }));
    const tracks = new Tracks(storeOf(calls));
    expect(tracks.grow()).toBe(false);
    expect(tracks.grow()).toBe(true);
    expect(tracks.of(0)[0]!.length).toBe(200_001);
  });

  test('find calls by time', () => {
    const tracks = new Tracks(storeOf([0, 100, 200, 300].map(start => ({ start, duration: 50 }))));
    tracks.grow();
    const track = tracks.of(0)[0]!;
    expect([-1, 0, 1, 300, 301].map(ns => track.firstFrom(ns))).toEqual([0, 0, 1, 3, 4]);
    expect(track.firstFrom(0, 2)).toBe(2);
    expect([149, 150, 151].map(ns => track.firstOpen(ns))).toEqual([1, 2, 2]);
    expect(track.busyBetween(1, 3)).toBe(100);
    expect([0, 3, 4].map(row => track.placeOf(row))).toEqual([0, 3, null]);
  });

  test('find failed calls by position', () => {
    const tracks = new Tracks(storeOf([1, 0, 0, 1].map((error, n) => ({ start: 20 * n, error }))));
    tracks.grow();
    const track = tracks.of(0)[0]!;
    expect([0, 1, 3, 4].map(place => track.failureFrom(place))).toEqual([0, 1, 1, 2]);
    expect(track.failure(1)).toBe(3);
  });

  test('stay sorted if calls arrive out of order', () => {
    const store = storeOf([{ start: 500 }]);
    for (const start of [400, 300, 200, 100, 50, 600]) {
      store.calls.append(columns([{ start }]));
    }
    const tracks = new Tracks(store);
    tracks.grow();
    expect(rowsOf(tracks, 0)).toEqual([[0, 6], [1], [2], [3], [4, 5]]);
    for (const track of tracks.of(0)) {
      const starts = Array.from({ length: track.length }, (_, place) => track.start(place));
      expect(starts).toEqual([...starts].sort((a, b) => a - b));
    }
  });

  test('nest no deeper than the timeline can draw', () => {
    const calls = Array.from({ length: 9 }, (_, n) => ({ start: n, duration: 100 }));
    const tracks = new Tracks(storeOf(calls));
    tracks.grow();
    expect(rowsOf(tracks, 0)).toEqual([[0], [1], [2], [3], [4, 5, 6, 7, 8]]);
  });

  test('are reduced to the calls that pass the filter', () => {
    const store = storeOf([{ start: 0 }, { start: 20, variant: 1 }, { start: 40 }]);
    const tracks = new Tracks(store);
    tracks.grow();
    const lit = new LitTracks(store, tracks);
    expect(lit.of(0)).toBe(tracks.of(0));
    store.narrow({ ...EVERYTHING, site: 1 });
    expect(lit.of(0)[0]!.length).toBe(1);
    expect(lit.of(0)[0]!.row(0)).toBe(1);
  });
});

function rowsOf(tracks: Tracks, thread: number): number[][] {
  return tracks
    .of(thread)
    .map(track => Array.from({ length: track.length }, (_, place) => track.row(place)));
}
