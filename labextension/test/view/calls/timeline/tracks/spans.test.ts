import { describe, expect, test } from 'vitest';
import { dominant, walk } from '../../../../../src/view/calls/timeline/tracks/spans.js';
import { Tracks } from '../../../../../src/view/calls/timeline/tracks/tracks.js';
import { type Call, storeOf } from '../../stores.js';

describe('walk', () => {
  test('makes bars of calls wider than a pixel, and shades of the others', () => {
    const calls = [
      { start: 0, duration: 2 },
      { start: 3, duration: 2 },
      { start: 6, duration: 25 },
      { start: 35, duration: 1 },
      { start: 400, duration: 1 }
    ];
    expect(spans(calls, { from: 0, to: 100, width: 10 })).toEqual([
      ['shade', 0, 2, 0],
      ['bar', 2, 0.6, 3.1],
      ['shade', 3, 4, 3]
    ]);
  });

  test('starts with a call that began before the window', () => {
    const calls = [{ start: 0, duration: 5 }, { start: 10, duration: 100 }];
    expect(spans(calls, { from: 50, to: 100, width: 50 })).toEqual([['bar', 1, -40, 60]]);
  });

  test('takes one step per pixel, not per call', () => {
    const calls = Array.from({ length: 50_000 }, (_, n) => ({ start: 2 * n, duration: 1 }));
    expect(spans(calls, { from: 0, to: 100_000, width: 100 })).toHaveLength(100);
  });
});

test('a site dominates if it has most of the calls', () => {
  const variants = [0, 0, 1, 0, 1, 1, 0, 1];
  const tracks = new Tracks(storeOf(variants.map((variant, n) => ({ start: 20 * n, variant }))));
  tracks.grow();
  const site = (row: number) => variants[row]!;
  expect(dominant(tracks.of(0)[0]!, 0, 3, site)).toBe(0);
  expect(dominant(tracks.of(0)[0]!, 4, 6, site)).toBe(1);
  expect(dominant(tracks.of(0)[0]!, 0, 8, site)).toBeNull();
});

function spans(
  calls: readonly Call[],
  scale: { from: number; to: number; width: number }
): unknown[] {
  const tracks = new Tracks(storeOf(calls));
  tracks.grow();
  const found: unknown[] = [];
  walk(tracks.of(0)[0]!, scale, {
    bar: (...each) => found.push(['bar', ...each]),
    shade: (...each) => found.push(['shade', ...each])
  });
  return found;
}
