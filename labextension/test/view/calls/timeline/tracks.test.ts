import { describe, expect, test } from 'vitest';
import { EVERYTHING, type Store } from '../../../../src/view/data/store.js';
import { type Range, type Track, Tracks, walk } from '../../../../src/view/calls/timeline/tracks.js';
import { type Call, columns, storeOf } from '../stores.js';

function tracksOf(store: Store): Tracks {
  const tracks = new Tracks(store);
  tracks.grow();
  return tracks;
}

const first = (calls: readonly Call[]): Track => tracksOf(storeOf(calls)).all[0]![0]!;
const rows = (track: Track): number[] => Array.from({ length: track.length }, (_, n) => track.row(n));
const spans = (track: Track | null): number[][] =>
  Array.from({ length: track?.length ?? 0 }, (_, n) => [track!.start(n), track!.end(n)]);

describe('tracks', () => {
  test('put nested calls of one thread at different depths, no deeper than can be drawn', () => {
    const nested = [[0, 100], [10, 20], [15, 5], [40, 20], [100, 5]];
    const calls = nested.map(([start, duration]) => ({ start: start!, duration: duration! }));
    const tracks = tracksOf(storeOf([...calls, { start: 101, duration: 50, thread: 1 }]));
    expect(tracks.threads).toEqual([0, 1]);
    expect(tracks.all.map(band => band.map(rows))).toEqual([[[0, 4], [1, 3], [2]], [[5]]]);
    expect(tracks.end).toBe(151);
    const deep = Array.from({ length: 9 }, (_, n) => ({ start: n, duration: 100 }));
    expect(tracksOf(storeOf(deep)).all[0]!.map(rows)).toEqual([[0], [1], [2], [3], [4, 5, 6, 7, 8]]);
  });

  test('add calls that arrive later, very many in several steps', () => {
    const store = storeOf(Array.from({ length: 200_001 }, (_, n) => ({ start: 20 * n })));
    const tracks = new Tracks(store);
    expect([tracks.grow(), tracks.grow()]).toEqual([false, true]);
    store.calls.append(columns([{ start: 30, error: 1 }]), 4_000_010);
    expect([tracks.grow(), tracks.all[0]![0]!.length, tracks.failures]).toEqual([true, 200_002, 1]);
  });

  test('stay sorted if calls arrive out of order', () => {
    const store = storeOf([{ start: 500 }]);
    [400, 300, 200, 100, 50, 600].forEach(start => store.calls.append(columns([{ start }])));
    const tracks = tracksOf(store).all[0]!;
    expect(tracks.map(rows)).toEqual([[0, 6], [1], [2], [3], [4, 5]]);
    expect(tracks.map(track => spans(track).map(([start]) => start)).at(-1)).toEqual([100, 100]);
  });

  test('find calls by time', () => {
    const track = first([0, 100, 200, 300].map(start => ({ start, duration: 50 })));
    expect([-1, 0, 1, 300, 301].map(ns => track.firstFrom(ns))).toEqual([0, 0, 1, 3, 4]);
    expect([149, 150, 151].map(ns => track.firstOpen(ns))).toEqual([1, 2, 2]);
    expect([70, 90, 351, 354].map(ns => track.nearest(ns, 15))).toEqual([null, 1, 3, 3]);
    expect([0, 3, 4].map(row => track.has(row))).toEqual([true, true, false]);
  });

  test('have the spans of crossings that made several calls, on each thread its own', () => {
    const of = (crossings: number[], more: (n: number) => Partial<Call> = () => ({})) =>
      tracksOf(storeOf(crossings.map((crossing, n) => ({ start: 20 * n, crossing, ...more(n) }))));
    const found = (tracks: Tracks) => tracks.all.map(band => band.map(each => spans(each.crossings)));
    expect(found(of([3, 3, 3, 4, 5, 5, 4, 5, 5]))).toEqual([[[[0, 50], [80, 110], [140, 170]]]]);
    expect(found(of([1, 2, 3]))).toEqual([[[]]]);
    const alternating = of([7, 7, 7, 7, 8, 8], n => ({ thread: n % 2 }));
    expect(found(alternating)).toEqual([[[[0, 50]]], [[[20, 70]]]]);
    const inner = of([1, 2, 2, 1], n => ({ duration: n ? 5 : 55 }));
    expect(found(inner)).toEqual([[[[0, 65]], [[20, 45]]]]);
    expect(found(tracksOf(storeOf([{ start: 0 }, { start: 20 }])))).toEqual([[[]]]); // not known
  });

  test('are reduced to the calls that pass the filter', () => {
    const store = storeOf([{ start: 0 }, { start: 20, variant: 1 }, { start: 40 }]);
    const tracks = tracksOf(store);
    store.narrow({ ...EVERYTHING, site: 1 });
    expect(tracks.lit.map(band => band.map(rows))).toEqual([[[1]]]);
  });
});

describe('walk', () => {
  function visited(calls: readonly Call[], from: number, to: number, width: number): unknown[] {
    const found: unknown[] = [];
    walk(first(calls), { from, to, width }, {
      bar: (...each) => found.push(['bar', ...each]),
      shade: (...each) => found.push(['shade', ...each])
    });
    return found;
  }

  test('makes bars of calls wider than a pixel, and shades of the others', () => {
    const times = [[0, 2], [3, 2], [6, 25], [35, 1], [400, 1]];
    const calls = times.map(([start, duration]) => ({ start: start!, duration: duration! }));
    const parts = [['shade', 0, 2, 0], ['bar', 2, 0.6, 3.1], ['shade', 3, 4, 3]];
    expect(visited(calls, 0, 100, 10)).toEqual(parts);
    expect(visited([{ start: 0, duration: 5 }, { start: 10, duration: 100 }], 50, 100, 50)).toEqual([
      ['bar', 1, -40, 60] // it began earlier
    ]);
  });

  test('takes one step per pixel, not per call', () => {
    const calls = Array.from({ length: 50_000 }, (_, n) => ({ start: 2 * n, duration: 1 }));
    expect(visited(calls, 0, 100_000, 100)).toHaveLength(100);
  });
});

describe('figures and extremes', () => {
  let [seed, start] = [7, 0];
  const next = (most: number) => (seed = (seed * 16_807) % 2_147_483_647) % most;
  const free = [0, 0];
  const all = Array.from({ length: 3_000 }, (_, n) => {
    const thread = next(2);
    start = Math.max(start + next(50), free[thread]!);
    const duration = 1 + next(900);
    free[thread] = start + duration;
    return { start, duration, thread, variant: next(2), error: n % 17 ? 0 : 1 };
  });
  const ranges: Range[] = [[0, start + 900], [start / 3, start / 2], [start / 2, start / 2 + 40], [-500, 0]];

  test.each(ranges)('of the calls from %d to %d are as one finds them by hand', (from, to) => {
    const found = all.filter(({ start, duration }) => start < to && start + duration > from);
    const sorted = found.map(({ duration }) => duration).sort((a, b) => a - b);
    const middle = [(sorted.length - 1) / 2, sorted.length / 2].map(at => sorted[Math.floor(at)]!);
    const inside = found.map(
      ({ start, duration }) => Math.min(start + duration, to) - Math.max(start, from)
    );
    const tracks = tracksOf(storeOf(all));
    expect(tracks.figures([from, to], true)).toEqual({
      calls: found.length,
      failed: found.filter(({ error }) => error).length,
      sum: inside.reduce((sum, each) => sum + each, 0),
      median: found.length ? (middle[0]! + middle[1]!) / 2 : null
    });
    const ends = found.length ? [sorted[0], sorted.at(-1)] : null;
    expect(tracks.extremes([from, to])).toEqual(ends);
  });

  test('are of the calls in the range only, however these are kept in blocks', () => {
    const [inner, last, after] = [400, 1_023, 1_536]; // in a block, at its end, after its end
    const others = new Map([[inner, 1], [last, 5], [after, 15]]);
    const even = (_: unknown, n: number) => ({ start: 20 * n, duration: others.get(n) ?? 10 });
    const tracks = tracksOf(storeOf(Array.from({ length: 2_000 }, even)));
    expect(tracks.extremes([0, 20 * inner])).toEqual([10, 10]);
    expect(tracks.extremes([20 * (inner + 1), 20 * after])).toEqual([5, 10]);
    expect(tracks.extremes([0, 20 * after + 1])).toEqual([1, 15]);
  });

  test('have the median of very many calls only when the user has chosen the range', () => {
    const tracks = tracksOf(storeOf(Array.from({ length: 60_000 }, (_, n) => ({ start: 20 * n }))));
    const chosen = [false, true].map(each => tracks.figures([0, 1_200_000], each).median);
    expect(chosen).toEqual([null, 10]);
    expect(tracks.figures([0, 12_000], false).median).toBe(10);
  });
});
