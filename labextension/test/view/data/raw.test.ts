import { describe, expect, test } from 'vitest';
import { appendInSteps } from '../../../src/view/data/raw.js';
import { storeOf } from '../calls/stores.js';
import { someCalls } from '../recordings.js';

describe('appendInSteps', () => {
  test('adds all calls, with times that continue from step to step', async () => {
    const store = storeOf([]);
    await appendInSteps(store, someCalls(450_000));
    const { calls } = store;
    expect(calls.length).toBe(450_000);
    expect([0, 199_999, 200_000, 449_999].map(row => calls.start(row))).toEqual([
      100, 20_000_000, 20_000_100, 45_000_000
    ]);
    expect(calls.duration(449_999)).toBe(100);
  });

  test('rejects malformed calls', async () => {
    const malformed = { ...someCalls(2), rows: 3 };
    await expect(appendInSteps(storeOf([]), malformed)).rejects.toThrow('3 calls take 54 bytes');
  });
});
