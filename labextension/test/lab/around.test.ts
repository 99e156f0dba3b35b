import { expect, test, vi } from 'vitest';

test('outputs have no services until a plugin provides them', async () => {
  vi.resetModules();
  const { surround, surroundings } = await import('../../src/lab/around.js');
  expect(surroundings()).toBeNull();
  const given = vi.fn();
  surround(given);
  expect(surroundings()).toBe(given);
});
