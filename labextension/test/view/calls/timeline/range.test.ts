import { describe, expect, test } from 'vitest';
import { figuresIn, type Range } from '../../../../src/view/calls/timeline/range.js';
import { LitTracks, Tracks } from '../../../../src/view/calls/timeline/tracks/tracks.js';
import { EVERYTHING, type Store } from '../../../../src/view/data/store.js';
import { type Call, storeOf } from '../stores.js';

/** Calls of two threads, one after another on each, with gaps; some fail. */
function calls(count: number): Call[] {
  let [seed, start] = [7, 0];
  const next = (most: number) => (seed = (seed * 16_807) % 2_147_483_647) % most;
  const free = [0, 0];
  return Array.from({ length: count }, (_, n) => {
    start += next(50);
    const thread = next(2);
    start = Math.max(start, free[thread]!);
    const duration = 1 + next(900);
    free[thread] = start + duration;
    return { start, duration, thread, variant: next(2), error: n % 17 ? 0 : 1 };
  });
}

function litOf(store: Store): LitTracks {
  const tracks = new Tracks(store);
  tracks.grow();
  return new LitTracks(store, tracks);
}

describe('figuresIn', () => {
  const all = calls(2_000);
  const end = Math.max(...all.map(({ start, duration }) => start + duration!));
  const ranges: Range[] = [
    [0, end],
    [end / 3, end / 2],
    [end / 2, end / 2 + 40],
    [-500, 0],
    [all[900]!.start, all[900]!.start + all[900]!.duration!]
  ];

  test.each(ranges)('counts and sums the calls from %d to %d as one does by hand', (from, to) => {
    const store = storeOf(all);
    const found = all.filter(({ start, duration }) => start < to && start + duration! > from);
    const sorted = found.map(({ duration }) => duration!).sort((a, b) => a - b);
    const middle = [(sorted.length - 1) / 2, sorted.length / 2].map(at => sorted[Math.floor(at)]!);
    const inside = found.map(
      ({ start, duration }) => Math.min(start + duration!, to) - Math.max(start, from)
    );
    expect(figuresIn(litOf(store).all, store, [from, to], true)).toEqual({
      calls: found.length,
      failed: found.filter(({ error }) => error).length,
      sum: inside.reduce((sum, each) => sum + each, 0),
      median: found.length ? (middle[0]! + middle[1]!) / 2 : null
    });
  });

  test('leaves out the calls that do not pass the filters', () => {
    const store = storeOf(all);
    store.narrow({ ...EVERYTHING, site: 1 });
    const own = all.filter(({ variant }) => variant === 1).length;
    expect(figuresIn(litOf(store).all, store, [0, end], true).calls).toBe(own);
  });

  test('computes the median of very many calls only when the user has chosen the range', () => {
    const many = Array.from({ length: 60_000 }, (_, n) => ({ start: 20 * n }));
    const store = storeOf(many);
    const tracks = litOf(store).all;
    expect(figuresIn(tracks, store, [0, 1_200_000], false).median).toBeNull();
    expect(figuresIn(tracks, store, [0, 1_200_000], true).median).toBe(10);
    expect(figuresIn(tracks, store, [0, 12_000], false).median).toBe(10);
  });
});

describe('LitTracks.extremes', () => {
  const all = calls(3_000);

  test('are of the calls in the range only, however these are kept in blocks', () => {
    const [first, last, next] = [400, 1_023, 1_536]; // in a block, at its end, after its end
    const others = new Map([[first, 1], [last, 5], [next, 15]]);
    const even = Array.from({ length: 2_000 }, (_, n) => ({
      start: 20 * n,
      duration: others.get(n) ?? 10
    }));
    const lit = litOf(storeOf(even));
    expect(lit.extremes(0, 20 * first)).toEqual([10, 10]);
    expect(lit.extremes(20 * (first + 1), 20 * next)).toEqual([5, 10]);
    expect(lit.extremes(0, 20 * next + 1)).toEqual([1, 15]);
  });

  test.each([[0, 1e9], [5_000, 200_000], [300_000, 300_001]])(
    'are the shortest and the longest call that runs from %d to %d',
    (from, to) => {
      const found = all.filter(({ start, duration }) => start < to && start + duration! > from);
      const durations = found.map(({ duration }) => duration!);
      const expected = durations.length ? [Math.min(...durations), Math.max(...durations)] : null;
      expect(litOf(storeOf(all)).extremes(from, to)).toEqual(expected);
    }
  );
});
