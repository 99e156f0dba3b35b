import { describe, expect, test } from 'vitest';
import { ticks } from '../../../../../src/view/calls/timeline/picture/ticks.js';

describe('ticks', () => {
  const labels = (from: number, to: number, most: number) =>
    ticks(from, to, most).map(each => each.label);

  test('are at round times', () => {
    expect(labels(0, 1e6, 5)).toEqual(['0', '0.2 ms', '0.4 ms', '0.6 ms', '0.8 ms', '1.0 ms']);
    expect(labels(3, 20, 4)).toEqual(['5 ns', '10 ns', '15 ns', '20 ns']);
    expect(labels(1.05e9, 3e9, 2)).toEqual(['2 s', '3 s']);
  });

  test('have relative labels after the first when zoomed in', () => {
    expect(labels(3e9, 3e9 + 100, 2)).toEqual(['3.00000000 s', '+50 ns', '+100 ns']);
  });

  test('do not exceed the requested number', () => {
    for (const to of [1, 20, 999, 12_345, 7e9, 3e15]) {
      expect(labels(0, to, 6).length).toBeLessThanOrEqual(7);
    }
  });
});
