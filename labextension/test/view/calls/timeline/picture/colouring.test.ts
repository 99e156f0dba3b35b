import { describe, expect, test } from 'vitest';
import {
  byDuration,
  bySite,
  rampEdges,
  rampPlace
} from '../../../../../src/view/calls/timeline/picture/colouring.js';
import type { Theme } from '../../../../../src/view/calls/timeline/picture/theme.js';
import { Tracks } from '../../../../../src/view/calls/timeline/tracks/tracks.js';
import { storeOf } from '../../stores.js';

const STORE = storeOf([
  { start: 0, duration: 1 },
  { start: 10, duration: 1 },
  { start: 20, duration: 128 },
  { start: 200, duration: 128, variant: 1 },
  { start: 400, duration: 128, variant: 9 }
]);
const THEME = {
  sites: ['site 0', 'site 1'],
  onSites: ['text 0', 'text 1'],
  durations: ['d0', 'd1', 'd2', 'd3', 'd4', 'd5', 'd6'],
  onDurations: ['t0', 't1', 't2', 't3', 't4', 't5', 't6'],
  mixed: 'mixed',
  back: 'back'
} as unknown as Theme;

function theTrack() {
  const tracks = new Tracks(STORE);
  tracks.grow();
  return tracks.of(0)[0]!;
}

describe('the color of calls', () => {
  test('is that of their site, or gray for several sites and unknown sites', () => {
    const colouring = bySite(STORE, THEME);
    expect([0, 3, 4].map(row => colouring.call(row))).toEqual([
      { fill: 'site 0', text: 'text 0' },
      { fill: 'site 1', text: 'text 1' },
      { fill: 'mixed', text: 'back' }
    ]);
    expect(colouring.calls(theTrack(), 0, 3)).toBe('site 0');
    expect(colouring.calls(theTrack(), 2, 4)).toBe('mixed');
  });

  test('is that of their duration, or of the mean duration in one pixel', () => {
    const colouring = byDuration(STORE, THEME, 1, 128);
    expect([0, 2].map(row => colouring.call(row))).toEqual([
      { fill: 'd0', text: 't0' },
      { fill: 'd6', text: 't6' }
    ]);
    expect(colouring.calls(theTrack(), 0, 2)).toBe('d0');
    expect(colouring.calls(theTrack(), 1, 3)).toBe('d6'); // 64.5 on average
    expect(colouring.calls(theTrack(), 0, 3)).toBe('d5'); // 43
  });
});

test('the colors of durations change at equal ratios', () => {
  expect(rampEdges(1, 128).map(Math.round)).toEqual([1, 2, 4, 8, 16, 32, 64, 128]);
  expect([1, 3, 5, 9, 17, 33, 65, 128].map(rampPlace(1, 128))).toEqual([0, 1, 2, 3, 4, 5, 6, 6]);
});

test.each([[0, 0], [5, 5], [Infinity, 0], [0, 7]])(
  'durations from %d to %d have colors',
  (shortest, longest) => {
    const place = rampPlace(shortest, longest);
    for (const ns of [0, shortest, longest].filter(Number.isFinite)) {
      expect(THEME.durations[place(ns)]).toBeDefined();
    }
    expect(rampEdges(Math.min(shortest, longest), longest).every(Number.isFinite)).toBe(true);
  }
);
