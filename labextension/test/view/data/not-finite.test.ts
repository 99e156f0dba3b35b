import { describe, expect, test } from 'vitest';
import { firstNotFinite, notFiniteParts, rowsIn } from '../../../src/view/data/not-finite.js';
import { labelsOf } from '../../../src/view/data/labels.js';
import { aSite, someFacts, someMeasured } from '../recordings.js';

describe('calls that returned NaN or infinity', () => {
  test('are the rows that follow the skipped ones', () => {
    expect(rowsIn([])).toEqual([]);
    expect(rowsIn([0, 2, 3, 1])).toEqual([0, 1, 5]);
    expect(rowsIn([4, 1, 0, 2, 7])).toEqual([4, 5, 6]);
    expect(rowsIn([0, Number.MAX_SAFE_INTEGER])).toHaveLength(100_000);
  });

  test('are labeled with what a call returned for which arguments', () => {
    const made = aSite({ not_finite_rows: [2, 1], sample_values: [['0 → nan', false]], sample_rows: [2] });
    const passing = aSite({ passed_on_rows: [3, 2] });
    const labels = labelsOf(someFacts([made, passing]), someMeasured());
    expect([...labels.notFinite].sort()).toEqual([[2, false], [3, true], [4, true]]);
    expect(labels.samples.get(2)).toBe('0 → nan');
    expect(labels.samples.get(4)).toBe('NaN or infinity');
    expect(firstNotFinite(labels.notFinite)).toBe(2);
    expect(firstNotFinite(labelsOf(someFacts([passing]), someMeasured()).notFinite)).toBe(3);
    expect(firstNotFinite(labelsOf(someFacts(), someMeasured()).notFinite)).toBeNull();
  });

  test('have values whose NaN and infinities are found, but not in names', () => {
    const found = (text: string) => notFiniteParts(text).filter((_, nth) => nth % 2);
    expect(found('element 3: nan, [1, -inf, inf, …] → nan')).toEqual(['nan', '-inf', 'inf', 'nan']);
    expect(found('1+nanj → inf+2j')).toEqual(['+nanj', 'inf']);
    expect(found('nano, info, binf, nan_x, 1.5')).toEqual([]);
    expect(notFiniteParts('[0, nan]').join('')).toBe('[0, nan]');
  });
});
