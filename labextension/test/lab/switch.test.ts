import { expect, test, vi } from 'vitest';
import { Switch } from '../../src/lab/switch.js';

test('a switch notifies listeners of changes only, until they are removed', () => {
  const badges = new Switch(true);
  const listener = vi.fn();
  const off = badges.listen(listener);
  badges.turn(true);
  expect(listener).not.toHaveBeenCalled();
  badges.turn(false);
  expect([badges.on, listener.mock.calls.length]).toEqual([false, 1]);
  off();
  badges.turn(true);
  expect(listener).toHaveBeenCalledOnce();
});
