import { expect, test } from 'vitest';
import { heightsOf } from '../../../../../src/view/calls/timeline/picture/geometry.js';

test.each([
  [1, null, { band: 22, shown: 22, least: 22, most: 88 }],
  [0, null, { band: 22, shown: 22, least: 22, most: 88 }],
  [3, 160, { band: 53, shown: 159, least: 66, most: 264 }],
  [3, 999, { band: 88, shown: 264, least: 66, most: 264 }],
  [3, 10, { band: 22, shown: 66, least: 66, most: 264 }],
  // Of many lanes, more become visible before all become taller.
  [12, null, { band: 22, shown: 176, least: 176, most: 800 }],
  [12, 220, { band: 22, shown: 220, least: 176, most: 800 }],
  [12, 480, { band: 40, shown: 480, least: 176, most: 800 }],
  [200, 999, { band: 22, shown: 800, least: 176, most: 800 }]
])('%d lanes for which %s px are wanted', (bands, wanted, heights) => {
  expect(heightsOf(bands, wanted)).toEqual(heights);
});
