import { describe, expect, test } from 'vitest';
import { ranks, sorted } from '../../../../src/view/calls/table/sort.js';

describe('sorted', () => {
  const rows = Uint32Array.from([0, 1, 2, 3, 4, 5, 6]);
  const keys = [3, -1, 0, 3, 0.5, -1e300, Infinity];

  test('sorts by keys of any sign and size', () => {
    expect([...sorted(rows, row => keys[row]!, false)]).toEqual([5, 1, 2, 4, 0, 3, 6]);
  });

  test('is stable, also in descending order', () => {
    expect([...sorted(rows, row => keys[row]!, true)]).toEqual([6, 0, 3, 4, 2, 1, 5]);
    expect([...sorted(rows, row => (row % 2 ? 0 : -0), true)]).toEqual([...rows]);
  });

  test('distinguishes keys that differ only in the last bit', () => {
    const close = [1, 1 + 2 ** -52, -1, -1 - 2 ** -52];
    const few = Uint32Array.from([0, 1, 2, 3]);
    expect([...sorted(few, row => close[row]!, false)]).toEqual([3, 2, 0, 1]);
    expect([...sorted(few, row => close[row]!, true)]).toEqual([1, 0, 2, 3]);
  });

  test('sorts a subset of the rows', () => {
    const some = Uint32Array.from([6, 3, 1]);
    expect([...sorted(some, row => keys[row]!, false)]).toEqual([1, 3, 6]);
    expect([...sorted(new Uint32Array(), () => 0, false)]).toEqual([]);
  });

  test('agrees with Array.sort on many rows', () => {
    const many = Uint32Array.from({ length: 5000 }, (_, n) => n);
    const key = (row: number) => ((row * 7919) % 1009) * 1e7 - 3e9;
    expect([...sorted(many, key, false)]).toEqual([...many].sort((a, b) => key(a) - key(b)));
  });

  test('ranks texts in natural order', () => {
    expect(ranks(['worker-10', 'worker-2', 'main', 'worker-2'])).toEqual([2, 1, 0, 1]);
  });
});
