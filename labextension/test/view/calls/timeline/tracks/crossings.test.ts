import { describe, expect, test } from 'vitest';
import { Tracks } from '../../../../../src/view/calls/timeline/tracks/tracks.js';
import { type Call, columns, storeOf } from '../../stores.js';

/** Calls of 10 ns, 20 ns apart, each with its crossing. */
function tracksOf(crossings: readonly number[], more: (place: number) => Partial<Call> = () => ({})): Tracks {
  const calls = crossings.map((crossing, place) => ({ start: 20 * place, crossing, ...more(place) }));
  const tracks = new Tracks(storeOf(calls));
  tracks.grow();
  return tracks;
}

/** First and last place of each crossing with several calls. */
function found(tracks: Tracks, thread = 0): number[][] {
  const { crossings } = tracks.of(thread)[0]!;
  return Array.from({ length: crossings.length }, (_, n) => [crossings.first(n), crossings.last(n)]);
}

describe('crossings', () => {
  test('are those of several calls, one after the other', () => {
    expect(found(tracksOf([3, 3, 3, 4, 5, 5, 6]))).toEqual([[0, 2], [4, 5]]);
    expect(found(tracksOf([1, 2, 3]))).toEqual([]);
  });

  test('are told apart by thread: an executor makes the calls of one crossing on several', () => {
    const tracks = tracksOf([7, 7, 7, 7, 8, 8], place => ({ thread: place % 2 }));
    expect([found(tracks, 0), found(tracks, 1)]).toEqual([[[0, 1]], [[0, 1]]]);
  });

  test('are not known of calls that an older version saved', () => {
    const tracks = new Tracks(storeOf([{ start: 0, element: 0 }, { start: 20, element: 1 }]));
    tracks.grow();
    expect(found(tracks)).toEqual([]);
    expect(tracks.haveCrossings).toBe(false);
  });

  test('go on when more of their calls arrive', () => {
    const store = storeOf([{ start: 0, crossing: 2 }]);
    const tracks = new Tracks(store);
    tracks.grow();
    expect(tracks.haveCrossings).toBe(false);
    for (const start of [20, 40]) {
      store.calls.append(columns([{ start, crossing: 2 }]));
      tracks.grow();
    }
    expect(found(tracks)).toEqual([[0, 2]]);
  });

  test('of calls within a call are their own', () => {
    const inner = { duration: 5 };
    const tracks = tracksOf([1, 2, 2, 1], place => (place === 0 ? { duration: 55 } : inner));
    expect(tracks.of(0).map(track => track.crossings.length)).toEqual([1, 1]);
  });
});
