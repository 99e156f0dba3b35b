import { describe, expect, test, vi } from 'vitest';
import { EVERYTHING } from '../../../../src/view/data/store.js';
import { figuresOf, shownBins } from '../../../../src/view/calls/distribution/figures.js';
import { storeOf } from '../stores.js';

const CALLS = [
  { start: 0, duration: 40 },
  { start: 50, duration: 10, error: 1 },
  { start: 100, duration: 20, thread: 1 },
  { start: 150, duration: 1000, variant: 1 },
  { start: 200, duration: 40 }
];

/** Each duration once, in no order: `step` has no divisor in common with `count`. */
function shuffled(count: number, step: number): { start: number; duration: number }[] {
  return Array.from({ length: count }, (_, n) => ({
    start: n,
    duration: 1 + ((n * step) % count)
  }));
}

describe('figuresOf', () => {
  test('counts the calls of each site and interpolates quantiles as NumPy does', async () => {
    const { sites, total, threads } = await figuresOf(storeOf(CALLS));
    const [first, second] = sites;
    // numpy.quantile([10, 20, 40, 40], [0.5, 0.95]) == [30, 40]
    expect(first).toMatchObject({
      site: 0, calls: 4, failed: 1, total: 110, least: 10, median: 30, p95: 40, most: 40, slowest: 0
    });
    expect(second).toMatchObject({ site: 1, calls: 1, least: 1000, median: 1000, p95: 1000, slowest: 3 });
    expect([total, [...threads]]).toEqual([1110, [[0, 4], [1, 1]]]);
  });

  test('has the exact quantiles of many calls', async () => {
    const { sites } = await figuresOf(storeOf(shuffled(10_001, 7919)));
    expect(sites[0]).toMatchObject({ least: 1, median: 5001, p95: 9501, most: 10_001 });
    expect(sites[0]!.bins.reduce((sum, calls) => sum + calls, 0)).toBe(10_001);
  });

  test('has a row for calls whose site is unknown, and none for sites without calls', async () => {
    const { sites } = await figuresOf(storeOf([{ start: 0, variant: 7 }, { start: 1, variant: 1 }]));
    expect(sites.map(({ site, calls }) => [site, calls])).toEqual([[1, 1], [null, 1]]);
  });

  test('lets the page handle input between parts of many calls', async () => {
    const tasks = vi.fn();
    const timer = setInterval(tasks, 0);
    await figuresOf(storeOf(shuffled(900_000, 7919)));
    clearInterval(timer);
    expect(tasks.mock.calls.length).toBeGreaterThanOrEqual(4);
  });

  test('counts no call that the user stopped as failed', async () => {
    const calls = [{ start: 0, error: 1 }, { start: 20, error: 2 }];
    const store = storeOf(calls, { errors: ['stopped by you', 'ValueError: no luck'] });
    expect((await figuresOf(store)).sites).toMatchObject([{ calls: 2, failed: 1 }]);
  });

  test('works without calls', async () => {
    expect(await figuresOf(storeOf([]))).toMatchObject({ sites: [], edges: [], total: 0 });
  });
});

test('shownBins counts the calls that pass the filter', async () => {
  const store = storeOf(CALLS);
  const figures = await figuresOf(store);
  const counts = () => shownBins(store, figures).map(bins => bins.reduce((sum, n) => sum + n, 0));
  expect(counts()).toEqual([4, 1]);
  store.narrow({ ...EVERYTHING, thread: 0 });
  expect(counts()).toEqual([3, 1]);
  store.narrow({ ...EVERYTHING, errors: true });
  expect(counts()).toEqual([1, 0]);
});
