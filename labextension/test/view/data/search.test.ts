import { expect, test } from 'vitest';
import { EVERYTHING } from '../../../src/view/data/store.js';
import { storeOf } from '../calls/stores.js';

const STORE = storeOf(
  [
    { start: 0, element: 3 },
    { start: 10, variant: 1, thread: 1, error: 1 },
    { start: 20, element: 12 },
    { start: 30, variant: 1, element: 33 },
    { start: 40, variant: 9, thread: 9 }
  ],
  {
    sites: ['bessel, line 31', 'lookup[a], model.py:12'],
    samples: new Map([[2, 'element 12: 1, 0.5 → 0.242']])
  }
);

test.each([
  ['', [0, 1, 2, 3, 4]],
  ['  ', [0, 1, 2, 3, 4]],
  ['BESSEL', [0, 2]],
  ['worker', [1]],
  ['main look', [3]],
  ['no luck', [1]],
  ['0.242', [2]],
  ['0.24', []],
  ['[a]', [1, 3]],
  ['.*', []],
  ['12', [1, 2, 3]], // a line and an element
  ['element 12', [2]],
  ['Element  3', [0]],
  ['line 3', []],
  ['line 31', [0, 2]],
  ['call 2', [1]],
  ['33', [3]],
  ['nothing', []]
])('%j finds the rows %j', (text, rows) => {
  STORE.narrow({ ...EVERYTHING, text });
  expect([0, 1, 2, 3, 4].filter(row => STORE.shows(row))).toEqual(rows);
});
