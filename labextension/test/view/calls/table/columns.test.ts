import { describe, expect, test } from 'vitest';
import { columnsOf, fitting } from '../../../../src/view/calls/table/columns.js';
import { storeOf } from '../stores.js';

describe('fitting', () => {
  const columns = columnsOf(storeOf([]));
  const names = (width: number): string[] => fitting(columns, width).map(({ name }) => name);

  test('keeps all columns if they fit, or if the width is unknown', () => {
    expect(names(1020)).toHaveLength(columns.length);
    expect(names(0)).toHaveLength(columns.length);
  });

  test('leaves out as few as possible, and never the number, site and duration of a call', () => {
    expect(names(900)).toEqual(
      ['number', 'site', 'element', 'start', 'duration', 'thread', 'error', 'sample']
    );
    expect(names(100)).toEqual(['number', 'site', 'duration']);
    for (const width of [280, 400, 560, 700, 900]) {
      const pixels = fitting(columns, width).reduce((sum, one) => sum + one.pixels, 0);
      expect(pixels).toBeLessThanOrEqual(width);
    }
  });
});
