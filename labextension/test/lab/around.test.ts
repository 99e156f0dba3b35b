import { expect, test, vi } from 'vitest';
import { surround, surroundings } from '../../src/lab/around.js';

test('outputs have no surroundings until a plugin gives them', () => {
  expect(surroundings()).toBeNull();
  const given = { reveal: vi.fn(), everything: vi.fn() };
  surround(given);
  expect(surroundings()).toBe(given);
});
