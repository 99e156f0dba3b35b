import { expect, test } from 'vitest';
import { heightsOf, ticks } from '../../../../src/view/calls/timeline/canvas.js';

test.each([
  [0, 1e6, 5, ['0', '0.2 ms', '0.4 ms', '0.6 ms', '0.8 ms', '1.0 ms']],
  [3, 20, 4, ['5 ns', '10 ns', '15 ns', '20 ns']],
  [-5e8, 5e8, 2, ['−500 ms', '0', '500 ms']],
  [3e9, 3e9 + 100, 2, ['3.00000000 s', '+50 ns', '+100 ns']]
])('ticks from %d to %d are at round times, when zoomed in far relative to the first', (from, to, most, labels) => {
  expect(ticks(from, to, most).map(([, label]) => label)).toEqual(labels);
});

test('there are no more ticks than requested', () => {
  for (const to of [1, 20, 999, 12_345, 7e9, 3e15]) {
    expect(ticks(0, to, 6).length).toBeLessThanOrEqual(7);
  }
});

test.each([
  [0, null, { band: 22, shown: 22, least: 22, most: 88 }],
  [3, 160, { band: 53, shown: 159, least: 66, most: 264 }],
  [3, 999, { band: 88, shown: 264, least: 66, most: 264 }],
  [3, 10, { band: 22, shown: 66, least: 66, most: 264 }],
  // Of many lanes, more become visible before all become taller.
  [12, 220, { band: 22, shown: 220, least: 176, most: 800 }],
  [12, 480, { band: 40, shown: 480, least: 176, most: 800 }],
  [200, 999, { band: 22, shown: 800, least: 176, most: 800 }]
])('%d lanes for which %s px are wanted', (bands, wanted, heights) => {
  expect(heightsOf(bands, wanted)).toEqual(heights);
});
