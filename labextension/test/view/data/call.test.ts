import { expect, test } from 'vitest';
import { callLine, startWords } from '../../../src/view/data/call.js';
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
