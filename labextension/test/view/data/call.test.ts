import { expect, test } from 'vitest';
import { startWords } from '../../../src/view/data/call.js';

test('all start times of a recording have the same unit', () => {
  expect(startWords(1500, 5e5)).toBe('1.5 µs');
  expect(startWords(1500, 5e6)).toBe('0.0015 ms');
  expect(startWords(1500, 5e9)).toBe('0.000002 s');
});
