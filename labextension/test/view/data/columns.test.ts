import { describe, expect, test } from 'vitest';
import { Calls } from '../../../src/view/data/columns.js';
import type { RawCalls } from '../../../src/view/data/raw.js';
import { ROW_BYTES } from '../../../src/view/data/schema.js';

type Row = readonly [since: number, duration: number, element: number, variant: number];

function raw(rows: readonly Row[], unit_ns = 1): RawCalls {
  const data = new DataView(new ArrayBuffer(rows.length * ROW_BYTES));
  rows.forEach(([since, duration, element, variant], row) => {
    data.setUint32(4 * row, since, true);
    data.setUint32(4 * (rows.length + row), duration, true);
    data.setInt32(4 * (2 * rows.length + row), element, true);
    data.setUint16(12 * rows.length + 2 * row, variant, true);
  });
  return { rows: rows.length, unit_ns, data };
}

describe('Calls', () => {
  test('accumulates the times between calls, in nanoseconds', () => {
    const calls = new Calls();
    calls.append(raw([[5, 1, -1, 0], [10, 2, 3, 7]], 100));
    expect([calls.start(0), calls.start(1)]).toEqual([500, 1500]);
    expect([calls.duration(1), calls.variant(1)]).toEqual([200, 7]);
    expect([calls.element(0), calls.element(1)]).toEqual([-1, 3]);
  });

  test('appends rows that start at a given base time', () => {
    const calls = new Calls();
    calls.append(raw([[0, 1, 0, 0]]));
    calls.append(raw([[5, 1, 0, 0]]), 1000);
    expect(calls.length).toBe(2);
    expect(calls.start(1)).toBe(1005);
  });

  test('keeps all rows when its arrays grow', () => {
    const calls = new Calls();
    const chunk = Array.from({ length: 700 }, (_, n): Row => [1, n, n, n]);
    for (let n = 0; n < 5; n++) {
      calls.append(raw(chunk), 700 * n);
    }
    expect(calls.length).toBe(3500);
    expect([0, 699, 700, 3499].map(row => calls.duration(row))).toEqual([0, 699, 0, 699]);
    expect(calls.start(3499)).toBe(3500);
  });

  test('has the crossing of each row, if it is known', () => {
    const calls = new Calls();
    const rows: Row[] = [[0, 1, 0, 0], [1, 1, 1, 0]];
    const crossings = new DataView(new ArrayBuffer(8));
    crossings.setUint32(4, 70_000, true);
    calls.append({ ...raw(rows), crossings });
    calls.append(raw(rows));
    expect([0, 1, 2, 3].map(row => calls.crossing(row))).toEqual([0, 70_000, null, null]);
  });

  test('knows what each crossing made, in whatever order the calls of several arrive', () => {
    const calls = new Calls();
    const rows = [7, 8, 7, 9, 8].map((_, n): Row => [n ? 10 : 0, 5 + 3 * n, 0, 0]);
    const crossings = new DataView(new ArrayBuffer(20));
    [7, 8, 7, 9, 8].forEach((number, row) => crossings.setUint32(4 * row, number, true));
    calls.append({ ...raw(rows), crossings });
    calls.append(raw([[0, 1, 0, 0]]));
    expect([0, 2, 3, 4, 5].map(row => calls.crossingOf(row))).toEqual([
      { calls: 2, duration: 31 },
      { calls: 2, duration: 31 },
      { calls: 1, duration: 14 },
      { calls: 2, duration: 47 },
      null
    ]);
  });

  test('rejects data whose size does not match the number of rows', () => {
    const one = raw([[0, 0, 0, 0]]);
    expect(() => new Calls().append({ ...one, rows: 2 })).toThrow('2 calls take 36 bytes, not 18');
    const crossings = new DataView(new ArrayBuffer(8));
    expect(() => new Calls().append({ ...one, crossings })).toThrow('1 calls take 4 bytes, not 8');
  });

  test('rejects times that would not be finite', () => {
    for (const unit of [0, NaN, Infinity]) {
      expect(() => new Calls().append(raw([[0, 0, 0, 0]], unit))).toThrow(RangeError);
    }
    for (const base of [NaN, -Infinity, Infinity]) {
      expect(() => new Calls().append(raw([[0, 0, 0, 0]]), base)).toThrow(RangeError);
    }
  });
});
