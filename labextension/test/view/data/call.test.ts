import { expect, test } from 'vitest';
import { callLine, endOf, startWords } from '../../../src/view/data/call.js';
import { hasFailed } from '../../../src/view/data/labels.js';
import { EVERYTHING } from '../../../src/view/data/store.js';
import { storeOf } from '../calls/stores.js';

test('all start times of a recording have the same unit', () => {
  expect(startWords(1500, 5e5)).toBe('1.5 µs');
  expect(startWords(1500, 5e6)).toBe('0.0015 ms');
  expect(startWords(1500, 5e9)).toBe('0.000002 s');
});

test('the line of a call says what its crossing made, if that is more than the call', () => {
  const store = storeOf([1, 1, 2].map((crossing, n) => ({ start: 20 * n, crossing })));
  const words = 'call 1 · bessel, line 3 · crossing of 2 calls in 30 ns · 10 ns at 0.0 µs';
  expect(callLine(store, 0, 50)).toContain(words);
  expect(callLine(store, 2, 50)).not.toContain('crossing');
});

test('a call that the user stopped is no failure', () => {
  const errors = ['stopped by you', 'ValueError: no luck'];
  const store = storeOf([{ start: 0 }, { start: 20, error: 1 }, { start: 40, error: 2 }], { errors });
  const rows = [0, 1, 2];
  expect(rows.map(row => endOf(store, row))).toEqual(['', '■ stopped by you', '✕ ValueError: no luck']);
  expect(rows.map(row => hasFailed(store, row))).toEqual([false, false, true]);
  expect(callLine(store, 1, 50)).toMatch(/ · ■ stopped by you$/);
  store.narrow({ ...EVERYTHING, errors: true });
  expect(rows.filter(row => store.shows(row))).toEqual([2]);
});
